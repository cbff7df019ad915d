"""The documents are true: the fifteen numbers agree everywhere, generated documents are fresh, commands work."""

import importlib.util
import json
import re
import sys
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from mutants import BY_ERROR, MUTANTS, PAGE_7
from PIL import Image

import td3
from bench.curves import final_scores
from td3.config import SETTINGS
from td3.diagnosis import RULES
from td3.environments.serial import SerialEnvs
from td3.views import cli

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
ALGORITHM = (ROOT / "td3/learner/td3.py").read_text()
STEPS_TEXT = (ROOT / "docs/fifteen-steps.md").read_text()
MARKDOWN = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]


def script(path):
    spec = importlib.util.spec_from_file_location(path.stem + "_script", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def blocks(text, language):
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def test_the_fifteen_numbers_stand_in_code_tests_and_documents_in_the_same_order():
    in_code = [int(number) for number in re.findall(r"# (\d+) · ", ALGORITHM)]
    in_tests = [
        int(number)
        for number in re.findall(r"def test_step_(\d\d)_", (ROOT / "tests/test_fifteen_steps.py").read_text())
    ]
    in_document = [int(number) for number in re.findall(r"^## (\d+) · ", STEPS_TEXT, re.MULTILINE)]
    assert in_code == in_tests == in_document == list(range(1, 16))


def test_the_second_algorithm_has_the_same_fifteen_steps_and_one_more():
    page = (ROOT / "td3/learner/td7.py").read_text()
    numbers = re.findall(r"# (\d+½?) · ", page)
    assert sorted(numbers, key=lambda number: float(number.replace("½", ".5"))) == [
        *map(str, range(1, 4)), "4½", *map(str, range(5, 16))
    ]  # fmt: skip
    (counted,) = re.findall(r"(\d+) mistakes", (ROOT / "docs/beyond.md").read_text())
    assert int(counted) == sum(mutant[-1] in (BY_ERROR, PAGE_7) for mutant in MUTANTS)


def test_the_native_engine_names_the_same_steps_in_the_same_words():
    source, files = ROOT / "td3/learner/native/source", ("critic_pass", "actor_pass", "adam")
    native = "".join((source / f"{name}.inl").read_text() for name in files)
    steps = re.findall(r"// (\d+) · ([^:;.\n]+)", native)
    assert [int(number) for number, _ in steps] == list(range(5, 16))
    titles = dict(re.findall(r"# (\d+) · (?:Delayed: )?([^:;.\n]+)", ALGORITHM))
    for number, words in steps:
        assert words.strip().lower() == titles[number].strip().lower()


def test_the_native_engine_names_the_steps_of_the_second_algorithm_in_its_words():
    source, files = (
        ROOT / "td3/learner/native/source",
        ("embedding_pass", "td7_critic_pass", "td7_actor_pass", "td7_tasks"),
    )
    native = "".join((source / f"{name}.inl").read_text() for name in files)
    titles = dict(re.findall(r"# (\d+½?) · ([^:;.\n]+)", (ROOT / "td3/learner/td7.py").read_text()))
    steps = re.findall(r"// (\d+½?) · ([^:;.\n]+)", native)
    assert [number for number, _ in steps] == ["4½", *map(str, range(5, 16))]
    assert dict(steps) == {number: words for number, words in titles.items() if number not in ("1", "2", "3")}


def test_the_documents_titles_are_the_pictures_titles():
    pictures = script(ROOT / "docs/pictures.py")
    titles = re.findall(r"^## \d+ · (.+)$", STEPS_TEXT, re.MULTILINE)
    assert titles == [step.title for step in pictures.STEPS]


def test_the_pictures_are_what_their_script_draws(tmp_path):
    script(ROOT / "docs/pictures.py").draw_all(tmp_path)
    pictures = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert len(pictures) == 17
    for name, data in pictures.items():
        assert (ROOT / "docs/pictures" / name).read_bytes() == data, f"{name}: run python docs/pictures.py"


def test_the_document_of_settings_is_what_the_config_says():
    assert (ROOT / "docs/settings.md").read_text() == script(ROOT / "docs/settings.py").page()


def test_the_document_of_findings_is_what_rules_and_runs_say():
    script_of_findings = script(ROOT / "docs/does_not_learn.py")
    assert (ROOT / "docs/it-does-not-learn.md").read_text() == script_of_findings.page()
    found = json.loads((ROOT / "docs/results/findings.json").read_text())
    assert set(found) == {rule.name for rule in RULES}
    pictures = {path.name for path in (ROOT / "docs/pictures").glob("finding-*.png")}
    assert pictures == {f"finding-{name.replace('_', '-')}.png" for name in found}


def test_the_document_of_metrics_is_what_their_module_says():
    assert (ROOT / "docs/metrics.md").read_text() == script(ROOT / "docs/metrics.py").page()


def test_the_page_of_results_is_made_from_the_files_of_the_runs():
    assert (ROOT / "docs/results.md").read_text() == script(ROOT / "docs/results.py").page()
    runs = list((ROOT / "results/v5").glob("*/*/seed-*.json"))
    assert runs and all(json.loads(path.read_text())["evaluations"][-1][0] >= 300_000 for path in runs)


def readme_rows(*starts):
    """The cells of the README's table rows that begin with these cells."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in README.splitlines() if line[:1] == "|"]
    return [row for row in rows if row[: len(starts)] == list(starts)]


@pytest.mark.parametrize("preset", ["paper", "author"])
def test_the_readmes_returns_are_those_of_the_results_that_the_curves_show(preset):
    results = json.loads((ROOT / "docs/results/halfcheetah.json").read_text())
    scores = final_scores(results, preset)
    (row,) = readme_rows(results["env"], f"{results['steps'][-1]:,}", f"`{preset}`, {results['engine']}")
    assert row[3:5] == [f"0–{len(scores) - 1}", f"{np.mean(scores):.0f} ± {np.std(scores):.0f}"]


def test_the_readmes_speed_is_that_of_the_tables_of_speed():
    (run,) = script(ROOT / "docs/speed.py").measured((ROOT / "docs/speed.md").read_text())["runs"]
    speed = {name: found["best"] for name, found in run["updates"]["author"]["speeds"].items()}
    ours, theirs, jax = (speed[name] for name in ("td3 native", "Stable-Baselines3", "SBX (JAX)"))
    assert f"**{ours / theirs:.1f} × faster** than Stable-Baselines3 on two CPU cores" in README and run["threads"] == 2
    assert f"{ours / jax:.1f} × faster than its JAX version" in README
    ((_, *cells),) = readme_rows("updates per second (256-256, batch 256)")
    assert cells == [f"{ours:.0f}", f"{theirs:.0f}", "not measured"]


def test_the_readme_begins_with_an_animation_that_is_small_and_does_not_flicker():
    first = re.findall(r"!\[[^]]*\]\(([^)]+)\)", README)[0]
    assert (ROOT / first).stat().st_size < 1_500_000
    with Image.open(ROOT / first) as animation:
        assert animation.n_frames > 60 and animation.info["loop"] == 0
        durations = []
        for frame in range(animation.n_frames):
            animation.seek(frame)
            animation.load()
            durations.append(animation.info["duration"])
    assert min(durations) >= 40 and 8_000 < sum(durations) < 20_000  # milliseconds


def test_a_search_finds_the_readme():
    first_screen = README[: README.index("## Train")]
    for words in ("TD3", "Twin Delayed DDPG", "T3D", "arxiv.org/abs/1802.09477", "continuous control", "Gymnasium"):
        assert words in first_screen


def test_the_lines_of_code_in_the_fifteen_steps_are_lines_of_the_algorithm():
    known = {" ".join(line.split("#")[0].split()) for line in ALGORITHM.splitlines()}
    for block in blocks(STEPS_TEXT, "python"):
        for line in filter(None, (" ".join(line.split("#")[0].split()) for line in block.splitlines())):
            assert line in known, line


@pytest.mark.parametrize("path", MARKDOWN, ids=lambda path: path.name)
def test_every_link_to_a_file_leads_somewhere(path):
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", path.read_text()):
        if not target.startswith("http"):
            assert (path.parent / target).exists(), target


def anchors(text):
    """The names of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", MARKDOWN, ids=lambda path: path.name)
def test_every_link_to_a_heading_leads_to_one(path):
    for target, heading in re.findall(r"\]\(([^)#]*)#([^)]+)\)", path.read_text()):
        if not target.startswith("http"):
            page = path.parent / target if target else path
            assert heading in anchors(page.read_text()), f"{target}#{heading}"


def test_every_name_that_words_gives_as_ours_is_a_setting_a_command_or_in_the_linked_file():
    rows = re.findall(r"^\| (.+) \| (.+) \| (.+) \|$", (ROOT / "docs/words.md").read_text(), re.MULTILINE)
    choices = {choice for setting in SETTINGS.values() for choice in setting.choices}
    spans = re.compile(r"`([^`]+)`")
    theirs = {name for row in rows for name in spans.findall(row[0])}
    for row in rows:
        linked = [ROOT / "docs" / target for target in re.findall(r"\]\(([^)#]+)", " ".join(row[1:]))]
        text = "\n".join(file.read_text() for file in linked if file.is_file())
        for column in (1, 2):
            for name in spans.findall(row[column]):
                if name.startswith("td3 "):
                    assert cli.understand(name.split()[1:]).command == name.split()[1]
                    continue
                known = {*SETTINGS, *choices, *(theirs if column == 2 else ())}
                assert name in known or re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text), (name, row[0])
    assert len(rows) > 40 and {"policy_freq", "done", "select_action"} <= theirs


@pytest.mark.parametrize("path", MARKDOWN, ids=lambda path: path.name)
def test_every_td3_command_in_the_documents_is_understood(path):
    for block in blocks(path.read_text(), "console"):
        for line in block.splitlines():
            if line.startswith("$ "):
                for command in line[2:].split("#")[0].split("&&"):
                    words = command.split()
                    if words[0] == "td3":
                        assert cli.understand(words[1:]).command == words[1]


def test_the_readmes_python_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (code,) = blocks(README, "python")
    small = code.replace("100_000", "300, eval_every=300, eval_episodes=1, warmup_steps=100, hidden=(16,)")
    small = (
        small.replace("episodes=10)", "episodes=1)")
        .replace("20_000", "60")
        .replace('"Pendulum-v1"', '"Pendulum-v1", warmup_steps=20, hidden=(16,)')
    )
    assert small != code
    names = {}
    exec(small, names)
    assert names["action"].shape == (6,)
    assert {path.name for path in tmp_path.iterdir()} == {"runs", "pendulum"}


def code_of(page):
    """What the only Python block of a page defines."""
    (code,) = blocks((ROOT / "docs" / page).read_text(), "python")
    names = {}
    exec(code, names)
    return names


WRAPPED = {  # the wrapper, the action space, actions of the agent, and what the environment gets of them
    "largest": (spaces.Discrete(3, start=5), [[0.1, -1, 0.3], [-0.1, -0.2, -0.3]], [7, 5]),
    "parts": (spaces.Discrete(4, start=-1), [[-1], [-0.4], [0.1], [1]], [-1, 0, 1, 2]),
    "each_in_parts": (spaces.MultiDiscrete([2, 3]), [[-1, -1], [0.1, 0.1], [1, 1]], [[0, 0], [1, 1], [1, 2]]),
    "switches": (spaces.MultiBinary(2), [[-1, 1], [0.5, 0]], [[0, 1], [1, 0]]),
    "joined": (
        spaces.Dict({"a": spaces.Box(-2, 2, (2,)), "b": spaces.Box(0, 1, (1,))}),
        [[-1, 1, -1], [0, 0.5, 0]],
        [{"a": [-2, 2], "b": [0]}, {"a": [0, 1], "b": [0.5]}],
    ),
    "choice_and_numbers": (
        spaces.Tuple([spaces.Discrete(2), spaces.Box(-3, 3, (1,))]),
        [[0, 1, -1], [1, 0, 0.5]],
        [(1, [-3]), (0, [1.5])],
    ),
}


class Taking(gymnasium.Env):
    """Collects the actions that it is given, each inside its space."""

    observation_space = spaces.Box(-1, 1, (1,))

    def __init__(self, action_space):
        self.action_space, self.taken = action_space, []

    def reset(self, *, seed=None, options=None):
        return np.zeros(1, np.float32), {}

    def step(self, action):
        assert action in self.action_space
        self.taken.append(action)
        return np.zeros(1, np.float32), 0.0, False, False, {}


def plain(action):
    """An action as Python writes it."""
    if isinstance(action, dict):
        return {key: plain(part) for key, part in action.items()}
    return tuple(map(plain, action)) if isinstance(action, tuple) else np.asarray(action).tolist()


@pytest.mark.parametrize("name", list(WRAPPED))
def test_a_documented_wrapper_makes_the_actions_that_the_environment_takes(name):
    space, actions, expected = WRAPPED[name]
    env = Taking(space)
    envs = SerialEnvs(name, [code_of("environments.md")[name](env)])
    envs.reset([0])
    for action in np.array(actions, np.float32):
        envs.step(action[None])
    assert list(map(plain, env.taken)) == expected


def test_the_documented_cart_pole_trains():
    make = code_of("environments.md")["cart_pole"]
    config = td3.Config(env=make, steps=60, warmup_steps=40, hidden=(8,), eval_every=0)
    assert list(td3.train(config))[-1].step == 60


def test_ci_calls_the_readmes_test_command_and_the_readme_is_short():
    command = "pip install -e '.[test]' && pytest"
    assert f"$ {command}\n" in README and f"\n{command} || exit 1\n" in (ROOT / ".ci/run").read_text()
    assert "$ pip install -e . && td3 train\n" in README
    assert README.index("## In Python") < README.index("## Test")
    assert len(README.splitlines()) <= 120


def test_the_example_trains(capsys):
    example = script(ROOT / "examples/own_environment.py")
    assert -20_000 < example.main(1_100) < 0
    assert "step  1,100" in capsys.readouterr().out
