/* The native engine's plain C interface: what Python, or any other language, calls.
 *
 * An engine holds no parameters of its own. It reads and writes the tensors it is bound to, in the layout PyTorch
 * keeps them, and beside them only scratch memory and copies of the weights in the order its kernels like to read.
 * Results do not depend on the number of threads: every number is a sum in one fixed order.
 */
#ifndef TD3_NATIVE_INTERFACE_H
#define TD3_NATIVE_INTERFACE_H

#include <stdint.h>

#define TD3_PUBLIC __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

#define TD3_INTERFACE 3 /* counts incompatible changes; the caller compares it with td3_interface() */

/* One weight or bias as PyTorch keeps it: its value, what Adam remembers of it, and the target's value. */
typedef struct {
    float *value, *mean, *square, *step, *target;
} Td3Tensor;

/* Actor: weight and bias of each layer, the weight (outputs, inputs). Critics: the same, the weight
 * (2, inputs, outputs), both critics in one tensor. `layers` counts the output layer too. */
typedef struct {
    int64_t observations, actions, layers;
    const int64_t *hidden; /* layers - 1 widths */
} Td3Shape;

/* The replay memory's own arrays, row by row. `discount` is what the future of each row is worth; NULL: gamma. */
typedef struct {
    const float *observation, *action, *reward, *next_observation;
    const uint8_t *terminated;
    const float *discount;
} Td3Memory;

typedef struct {
    double gamma, tau, target_noise, noise_clip, actor_lr, critic_lr;
} Td3Settings;

typedef struct Td3Engine Td3Engine;

TD3_PUBLIC int64_t td3_interface(void);

/* The Python functions this library was tested to do the work of, each with its fingerprint; see tested.h. */
TD3_PUBLIC const char *td3_tested(void);

/* The names of the kernels this processor can run, best first; NULL after the last. */
TD3_PUBLIC const char *td3_kernels(int64_t place);

/* NULL where memory does not suffice, or no such kernels exist here. `rows` 0 makes an engine that only acts. */
TD3_PUBLIC Td3Engine *td3_new(const char *kernels, const Td3Shape *shape, int64_t rows, int64_t threads);
TD3_PUBLIC void td3_free(Td3Engine *engine);

/* Where the parameters are: 2 tensors (weight, bias) per layer. An engine that only acts needs the actor's values. */
TD3_PUBLIC void td3_bind(Td3Engine *engine, const Td3Tensor *actor, const Td3Tensor *critics);

/* The parameters were written by someone else: copy them anew. */
TD3_PUBLIC void td3_refresh(Td3Engine *engine);

/* Steps 5 to 15 for the memory's rows `picked`; `noise` is standard normal, (rows, actions); `delayed` moves the
 * actor and all targets too. `means` takes 5 numbers: the critics' loss, the actor's (NaN unless delayed), the means
 * of q1, q2 and target. `told`, where it is not NULL, takes next_action (rows, actions), then next_q1, next_q2,
 * target, q1, q2 (rows each). */
TD3_PUBLIC void td3_update(Td3Engine *engine, const Td3Settings *settings, const Td3Memory *memory,
                           const int64_t *picked, const float *noise, int64_t delayed, double *means, float *told);

/* The actor's actions for `rows` observations; may be called by several threads at once. 0 where memory is short. */
TD3_PUBLIC int64_t td3_act(Td3Engine *engine, const float *observations, int64_t rows, float *actions);

/* Billions of floating-point operations per second that `threads` cores reach when they only multiply and add. */
TD3_PUBLIC double td3_peak(const char *kernels, int64_t threads, double seconds);

#ifdef __cplusplus
}
#endif
#endif
