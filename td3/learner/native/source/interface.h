/* The native engine's C interface, for Python or any other language.
 *
 * An engine owns no parameters. It reads and writes the tensors it is bound to, in PyTorch's layout; it owns only
 * scratch memory and copies of the weights in the order its kernels read them. Results do not depend on the number of
 * threads: every sum has one fixed order.
 */
#ifndef TD3_NATIVE_INTERFACE_H
#define TD3_NATIVE_INTERFACE_H

#include <stdint.h>

#define TD3_PUBLIC __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

#define TD3_INTERFACE 5 /* grows with each incompatible change; the caller compares it with td3_interface() */

/* One weight or bias: its value, Adam's state (mean, square, step), and the target's value. */
typedef struct {
    float *value, *mean, *square, *step, *target;
} Td3Tensor;

/* Actor: weight and bias of each layer, the weight (outputs, inputs). Critics: the same, the weight
 * (2, inputs, outputs), both critics in one tensor. `layers` counts the output layer too. */
typedef struct {
    int64_t observations, actions, layers;
    const int64_t *hidden; /* layers - 1 widths */
} Td3Shape;

/* The replay memory's arrays, row by row. `discount` is per row; NULL: gamma for all. */
typedef struct {
    const float *observation, *action, *reward, *next_observation;
    const uint8_t *terminated;
    const float *discount;
} Td3Memory;

/* `loss_floor` 0: the critics' loss is the squared error. Above 0, for prioritised sampling: half the square of an
 * error below the floor, floor times its size elsewhere. */
typedef struct {
    double gamma, tau, target_noise, noise_clip, actor_lr, critic_lr, loss_floor;
} Td3Settings;

typedef struct Td3Engine Td3Engine;

TD3_PUBLIC int64_t td3_interface(void);

/* The Python functions that this library stands in for, each with the fingerprint it was tested with; see tested.h. */
TD3_PUBLIC const char *td3_tested(void);

/* The names of the kernels this processor can run, best first; NULL after the last. */
TD3_PUBLIC const char *td3_kernels(int64_t index);

/* NULL if memory is short or this processor has no such kernels. With `rows` 0 the engine can only act. */
TD3_PUBLIC Td3Engine *td3_new(const char *kernels, const Td3Shape *shape, int64_t rows, int64_t threads);
TD3_PUBLIC void td3_free(Td3Engine *engine);

/* Binds the parameters: 2 tensors (weight, bias) per layer. An engine that only acts needs the actor's values. */
TD3_PUBLIC void td3_bind(Td3Engine *engine, const Td3Tensor *actor, const Td3Tensor *critics);

/* Copies the parameters again, after someone else has written to them. */
TD3_PUBLIC void td3_refresh(Td3Engine *engine);

/* Performs steps 5 to 15 on the memory's rows `indices`. `noise` is standard normal, (rows, actions); `delayed` moves
 * the actor and all targets too. `means` receives 5 numbers: the critics' loss, the actor's (NaN unless delayed), the
 * means of q1, q2 and target. `outputs`, unless NULL, receives next_action (rows, actions), then next_q1, next_q2,
 * target, q1, q2 (rows each). */
TD3_PUBLIC void td3_update(Td3Engine *engine, const Td3Settings *settings, const Td3Memory *memory,
                           const int64_t *indices, const float *noise, int64_t delayed, double *means, float *outputs);

/* Computes the actor's actions for `rows` observations; several threads may call it at once. 0 if memory is short. */
TD3_PUBLIC int64_t td3_act(Td3Engine *engine, const float *observations, int64_t rows, float *actions);

/* ---- TD7 ---- */

/* `layers` count the output layer too; actor and critics have at least one hidden layer. */
typedef struct {
    int64_t observations, actions, embedding;
    int64_t embedding_layers, actor_layers, critic_layers;
    const int64_t *embedding_hidden, *actor_hidden, *critic_hidden; /* layers - 1 widths each */
} Td7Shape;

/* `rate`: how far targets move to what they follow; 1 copies. `low` and `high`: next values are clipped to them if
 * `clip_targets` is not 0. `both_critics` 0: the actor ascends the first critic alone. `loss_floor`: see Td3Settings. */
typedef struct {
    double gamma, rate, target_noise, noise_clip, actor_lr, critic_lr, loss_floor, embedding_lr, low, high;
    int64_t clip_targets, both_critics;
} Td7Settings;

typedef struct Td7Handle Td7Handle;

TD3_PUBLIC Td7Handle *td7_new(const char *kernels, const Td7Shape *shape, int64_t rows, int64_t threads);
TD3_PUBLIC void td7_free(Td7Handle *engine);

/* Binds the parameters, weight and bias of each layer. `embedding`: f, then g. `fixed`: f_t, then g_t, with f_{t-1}
 * and g_{t-1} as targets. `actor` and `critics`: the linear layer of their own, then the others. An engine that only
 * acts needs the values of f_t and the actor. Copies the parameters as td3_refresh does. */
TD3_PUBLIC void td7_bind(Td7Handle *engine, const Td3Tensor *embedding, const Td3Tensor *fixed, const Td3Tensor *actor,
                         const Td3Tensor *critics);

/* Performs steps 4 1/2 to 15. `delayed` moves the actor too, `copied` all targets and f_t, g_t. `means` receives 8
 * numbers: those of td3_update, the embedding's loss, the smallest and the largest target. `outputs`, unless NULL,
 * receives those of td3_update, with next_q, the clipped smaller value, after next_q2. */
TD3_PUBLIC void td7_update(Td7Handle *engine, const Td7Settings *settings, const Td3Memory *memory,
                           const int64_t *indices, const float *noise, int64_t delayed, int64_t copied, double *means,
                           float *outputs);

TD3_PUBLIC int64_t td7_act(Td7Handle *engine, const float *observations, int64_t rows, float *actions);

/* Measures the GFLOPS that `threads` threads reach together when they only multiply and add. */
TD3_PUBLIC double td3_peak(const char *kernels, int64_t threads, double seconds);

#ifdef __cplusplus
}
#endif
#endif
