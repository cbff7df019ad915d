/* The Python functions whose work the library does, each with a fingerprint of what it says.
 *
 * It is what the C++ was tested with, not what it was built beside: `python -m td3.learner.native --renew` writes it,
 * once the C++ does what these functions say and the tests pass. See fingerprint.py. */
#ifndef TD3_NATIVE_TESTED_H
#define TD3_NATIVE_TESTED_H

#define TD3_TESTED \
    "td3.learner.td3:Learner.learn 56c73cd608959c8f\n" \
    "td3.learner.td3:Learner.draw b083d6f2f815f45c\n" \
    "td3.learner.td3:Learner.recall 2d466787670676fd\n" \
    "td3.learner.td3:Learner.update 0c2861f9b446a136\n" \
    "td3.learner.td3:Learner.act ed8e9bef1b1bc4b2\n" \
    "td3.learner.networks:Actor.forward 5b402f4463964fe2\n" \
    "td3.learner.networks:Critics.forward 34330be4cf9a4400\n" \
    "td3.learner.networks:Critics.first a8338fc29bdfdec0\n" \
    "td3.learner.networks:TwinLinear.forward fba53841e47cefb1\n" \
    "td3.learner.networks:TwinLinear.first c92a0a4d2f784bcc\n" \
    "td3.learner.networks:play 57fa810d31cf52b1\n" \
    "td3.learner.encoders:Vectors.forward 090c026da9f78ac5\n" \
    "td3.learner.targets:polyak 504fa294be66ef06\n" \
    "td3.learner.reading:ready 2c435f92b6b92129\n" \
    "td3.replay.memory:Memory.draw 14fc4dd9c916bb70\n" \
    "td3.replay.memory:Memory.gather 310679f817cbe30a\n" \
    "td3.replay.links:look_ahead b3f5dd6fd431144a\n" \
    "td3.types:Update.means 5bc53b4dd5c01b0b\n"

#endif
