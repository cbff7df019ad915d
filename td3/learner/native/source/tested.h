/* The Python functions whose work the library does, each with a fingerprint of what it says.
 *
 * It is what the C++ was tested with, not what it was built beside: `python -m td3.learner.native --renew` writes it,
 * once the C++ does what these functions say and the tests pass. See fingerprint.py. */
#ifndef TD3_NATIVE_TESTED_H
#define TD3_NATIVE_TESTED_H

#define TD3_TESTED \
    "td3.learner.td3:Learner.learn 8ada35c457e9ea3f\n" \
    "td3.learner.td3:Learner.sample 9516e44436d5ddeb\n" \
    "td3.learner.td3:Learner.load_batch 8d13abbaaa747147\n" \
    "td3.learner.td3:Learner.target 430cb306a8ee1181\n" \
    "td3.learner.td3:Learner.distance ef88be85af67c293\n" \
    "td3.learner.td3:Learner.update 085d95dcc69be1ac\n" \
    "td3.learner.td3:Learner.policy b184c205ea776278\n" \
    "td3.learner.td3:Learner.act b66034577fa21670\n" \
    "td3.learner.losses:lap_loss 7fb36ceb5ad506bd\n" \
    "td3.learner.networks:Actor.forward 5b402f4463964fe2\n" \
    "td3.learner.networks:Critics.forward 34330be4cf9a4400\n" \
    "td3.learner.networks:Critics.first a8338fc29bdfdec0\n" \
    "td3.learner.networks:TwinLinear.forward fba53841e47cefb1\n" \
    "td3.learner.networks:TwinLinear.first c92a0a4d2f784bcc\n" \
    "td3.learner.networks:act 166335646fb814cc\n" \
    "td3.learner.encoders:VectorEncoder.forward 090c026da9f78ac5\n" \
    "td3.learner.targets:polyak 504fa294be66ef06\n" \
    "td3.learner.preprocessing:preprocess fa298752a927bf1d\n" \
    "td3.replay.memory:Memory.sample 0e115914a64b03d9\n" \
    "td3.replay.memory:Memory.batch d4e50a94dce4a45f\n" \
    "td3.replay.links:look_ahead ea1d66c6b30715c0\n" \
    "td3.types:Update.means 98e174342c051327\n" \
    "td3.learner.td7:TD7Learner.learn c9bf8c4272f2eb5f\n" \
    "td3.learner.td7:TD7Learner.target d519c8d34f4707d6\n" \
    "td3.learner.td7:TD7Learner.update 1d6a59151e6d6153\n" \
    "td3.learner.td7:TD7Learner.copies_now d7b7a8ab7703a67c\n" \
    "td3.learner.td7:TD7Update.means 3b073001f24fa56b\n" \
    "td3.learner.assessment:TargetRange.clip a140bc724f68f6eb\n" \
    "td3.learner.embeddings:avg_l1_norm c46ff104aa63e9ef\n" \
    "td3.learner.embeddings:Embedding.forward 1454ff7063a95a11\n" \
    "td3.learner.embeddings:Embedding.state 633f85d8505dfb08\n" \
    "td3.learner.embeddings:Embedding.pair 44443d22400ee947\n" \
    "td3.learner.embeddings:EmbeddedActor.forward 43bc61705d629d99\n" \
    "td3.learner.embeddings:EmbeddedCritics.forward 8cb0a5eb5ba9834c\n" \
    "td3.learner.embeddings:EmbeddedCritics.first 0f3e1e2604e9e280\n" \
    "td3.learner.embeddings:EmbeddedCritics._inputs 399b3f1d3acd1cba\n"

#endif
