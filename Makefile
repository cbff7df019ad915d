# One word each; see CONTRIBUTING.md.
.PHONY: test lint format measure survive

test:
	pytest

lint:
	ruff check .
	ruff format --check .
	mypy

format:
	ruff check --fix .
	ruff format .

measure:
	python -m bench.learning Pendulum-v1 --seeds 5 --steps 15000 --at-least -200
	python -m bench.learning InvertedPendulum-v5 --steps 50000 --at-least 1000
	python -m bench.learning HalfCheetah-v5 --steps 100000
	python -m bench.learning HalfCheetah-v5 --steps 100000 --preset paper
	python -m bench.engines --picture docs/pictures/engines.png
	python -m bench.pixels --picture docs/pictures/pixels.png

survive:
	python -m bench.survival --kills 200
