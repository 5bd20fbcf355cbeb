// Small networks on a CPU core: forward pass, gradients, and the adversarial steps of FedOV, each in one call.
//
// Inside, the batch is innermost: one SIMD vector holds the same value of LANES samples, so that no layer is too narrow
// to fill it. Samples are turned into such tiles on their way in (which settles padding, alignment and the last,
// incomplete block at once) and back on their way out. Nothing is allocated or kept here, so any number of threads may
// call at once, each with its own scratch memory.

#include "network.h"

using namespace ostraka;

namespace {

// The adversarial steps. Mirrored by `Attack` in library.py.
struct Attack {
    int32_t steps;  // each climbs the cross-entropy of the last class
    Step step;
    float w_start, w_end;  // weights of that cross-entropy before and after all steps
};

// What rows of a batch are to learn: the first `known` ones their label, and, as second choice after it, the last class;
// all others the last class. The weights are those of one row. Mirrored by `Lesson` in library.py.
struct Lesson {
    int32_t known;
    float w_label, w_second, w_rest;
};

// Calls f(number of the block, its first sample, samples in it).
template <class F>
void blocks(int batch, F f) {
    for (int first = 0; first < batch; first += LANES) f(first / LANES, first, batch - first < LANES ? batch - first : LANES);
}

size_t bytes_of_values(const Network& net) {
    Arena arena(nullptr);
    Values(arena, net);
    return arena.used;
}

// Loss of LANES answers, whose gradient becomes ready for the backward pass. Lanes without a row have weight 0.
double make_error(const Network& net, const Values& v, const Slopes& slopes, const Lesson& lesson,
                  const int64_t* labels, int first, int lanes) {
    const int outputs = net.last().out;
    Mask target = all(outputs - 1), known{};
    Vec weight{}, second{};
    for (int i = 0; i < lanes; i++) {
        known[i] = first + i < lesson.known;
        if (known[i]) target[i] = int32_t(labels[first + i]);
        weight[i] = known[i] ? lesson.w_label : lesson.w_rest;
        second[i] = known[i] ? lesson.w_second : 0.0f;
    }
    const Vec* logits = v.seen[net.count].pixels;
    Vec* grad = slopes.behind[net.count].pixels;
    clear(grad, outputs);
    double loss = cross_entropy(logits, outputs, target, all(-1), weight, lanes, grad);
    if (lesson.w_second > 0) loss += cross_entropy(logits, outputs, all(outputs - 1), target, second, lanes, grad);
    return loss;
}

// All that passes without kept values need.
struct Session {
    const Network& net;
    Arena arena;
    const Values values;
    const Filters filters;
    const Slopes slopes;
    const Parameters params;
    const Gradients wanted;
    Session(const Network& net, const float* const* params, float* const* grads, void* scratch)
        : net(net), arena(scratch), values(arena, net), filters(arena, net), slopes(arena, net), params{params},
          wanted{grads} {
        filters.fill(net, this->params, true, true);
        slopes.clear_sums(net, wanted);
        values.clear_borders(net);
    }
    double pass(const Lesson& lesson, const int64_t* labels, int first, int lanes, const Gradients& grads,
                bool to_samples, const Step* step) const {
        forward(net, params, filters, values);
        const double loss = make_error(net, values, slopes, lesson, labels, first, lanes);
        backward(net, params, filters, values, slopes, grads, to_samples, step);
        return loss;
    }
};

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

// Raised whenever a signature or a struct changes; the loader refuses another number.
int ostraka_interface() { return 3; }

// Highest level this CPU (and its operating system) can run: 2, 3 (AVX2 + FMA) or 4 (AVX-512).
int ostraka_cpu_level() {
#if defined(__x86_64__)
    __builtin_cpu_init();
    const bool three = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    const bool four = three && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq");
    return four ? 4 : three ? 3 : 2;
#else
    return 2;
#endif
}

// Bytes that a forward pass keeps of all samples for the backward pass. All memory must be aligned to 64.
size_t ostraka_kept(const Network* net) { return bytes_of_values(*net) * ((net->batch + LANES - 1) / LANES); }

// Bytes of scratch memory that any of the calls below may use.
size_t ostraka_scratch(const Network* net) {
    Arena arena(nullptr);
    Values(arena, *net);
    Filters(arena, *net);
    Slopes(arena, *net);
    return arena.used;
}

// x is [batch, values of a sample], y [batch, values that the last layer gives]. `kept` may be null when no gradient
// will be asked for.
void ostraka_forward(const Network* net, const float* x, const float* const* params, float* y, char* kept,
                     void* scratch) {
    Arena arena(scratch);
    const Values own(arena, *net);
    const Filters filters(arena, *net);
    const Parameters parameters{params};
    filters.fill(*net, parameters, true, false);
    const size_t each = bytes_of_values(*net);
    if (!kept) own.clear_borders(*net);
    blocks(net->batch, [&](int number, int first, int lanes) {
        Arena place(kept + number * each);
        const Values v = kept ? Values(place, *net) : own;
        if (kept) v.clear_borders(*net);
        copy_in(x + first * v.seen[0].size(), lanes, v.seen[0]);
        forward(*net, parameters, filters, v);
        copy_out(v.seen[net->count], lanes, y + first * v.seen[net->count].size());
    });
}

// From the gradient in y: adds the wanted gradients in the parameters, and, if grad_x is not null, puts that in x there.
void ostraka_backward(const Network* net, const float* const* params, char* kept, const float* grad_y,
                      float* const* grads, float* grad_x, void* scratch) {
    Arena arena(scratch);
    const Filters filters(arena, *net);
    const Slopes slopes(arena, *net);
    const Parameters parameters{params};
    const Gradients wanted{grads};
    filters.fill(*net, parameters, false, true);
    slopes.clear_sums(*net, wanted);
    const size_t each = bytes_of_values(*net);
    blocks(net->batch, [&](int number, int first, int lanes) {
        Arena place(kept + number * each);
        const Values v(place, *net);
        const Tile &end = slopes.behind[net->count], &begin = slopes.behind[0];
        copy_in(grad_y + first * end.size(), lanes, end);
        backward(*net, parameters, filters, v, slopes, wanted, grad_x != nullptr, nullptr);
        if (grad_x) copy_out(begin, lanes, grad_x + first * begin.size());
    });
    slopes.finish(*net, wanted);
}

// Forward pass, loss and backward pass in one: returns the loss, adds the wanted gradients in the parameters, and, if
// grad_x is not null, puts that in x there.
double ostraka_learn(const Network* net, const Lesson* lesson, const float* x, const int64_t* labels,
                     const float* const* params, float* const* grads, float* grad_x, void* scratch) {
    const Session s(*net, params, grads, scratch);
    double loss = 0;
    blocks(net->batch, [&](int, int first, int lanes) {
        const Tile& begin = s.slopes.behind[0];
        copy_in(x + first * begin.size(), lanes, s.values.seen[0]);
        loss += s.pass(*lesson, labels, first, lanes, s.wanted, grad_x != nullptr, nullptr);
        if (grad_x) copy_out(begin, lanes, grad_x + first * begin.size());
    });
    s.slopes.finish(*net, s.wanted);
    return loss;
}

// The samples x after the steps of the attack, into `moved` (unless it is null). Returns w_start * mean cross-entropy
// of x + w_end * that of the moved samples, and adds the wanted gradients of this sum.
double ostraka_attack(const Network* net, const Attack* attack, const float* x, const float* const* params,
                      float* const* grads, float* moved, void* scratch) {
    const Session s(*net, params, grads, scratch);
    const Gradients none{nullptr};
    const auto lesson = [&](float weight) { return Lesson{0, 0.0f, 0.0f, weight / float(net->batch)}; };
    const bool at_start = attack->w_start > 0;
    double loss = 0;
    blocks(net->batch, [&](int, int first, int lanes) {
        const Tile& sample = s.values.seen[0];
        copy_in(x + first * sample.size(), lanes, sample);
        if (at_start)
            loss += s.pass(lesson(attack->w_start), nullptr, first, lanes, s.wanted, attack->steps > 0,
                           attack->steps > 0 ? &attack->step : nullptr);
        for (int i = at_start; i < attack->steps; i++)
            s.pass({0, 0.0f, 0.0f, 1.0f}, nullptr, first, lanes, none, true, &attack->step);
        if (moved) copy_out(sample, lanes, moved + first * sample.size());
        if (attack->w_end > 0) loss += s.pass(lesson(attack->w_end), nullptr, first, lanes, s.wanted, false, nullptr);
    });
    s.slopes.finish(*net, s.wanted);
    return loss;
}
}
#pragma GCC visibility pop
