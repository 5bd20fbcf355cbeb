// One SIMD vector of images. The compiler's vector extensions are all we use, so the same source serves
// SSE2, AVX2, AVX-512 and NEON; only the number of lanes and of registers differs.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

namespace ostraka {

#if defined(__AVX512F__)
constexpr int LANES = 16, REGISTERS = 32;
#elif defined(__AVX__)
constexpr int LANES = 8, REGISTERS = 16;
#elif defined(__aarch64__)
constexpr int LANES = 4, REGISTERS = 32;
#else
constexpr int LANES = 4, REGISTERS = 16;
#endif

typedef float Vec __attribute__((vector_size(LANES * sizeof(float))));
typedef int32_t Mask __attribute__((vector_size(LANES * sizeof(int32_t))));
typedef int8_t Bytes __attribute__((vector_size(LANES)));

// Accumulators stay in registers only when every loop over them is unrolled completely.
#if defined(__clang__)
#define UNROLL _Pragma("unroll")
#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define UNROLL _Pragma("GCC unroll 64")
#define SHUFFLE(a, b, ...) __builtin_shuffle(a, b, Mask{__VA_ARGS__})
#endif
#define INLINE inline __attribute__((always_inline))

// Subtracting zero is exact for every value, so the compiler drops it and one broadcast from memory is left; adding
// zero would turn -0 into 0 and costs an instruction each time.
static INLINE Vec all(float value) { return value - Vec{}; }
static INLINE Mask all(int32_t value) { return value - Mask{}; }

// `lanes` is LANES except for the last images of a batch, whose missing lanes read as zero.
template <class V, class T>
static INLINE V load(const T* from, int lanes) {
    static_assert(sizeof(V) == LANES * sizeof(T), "one element per lane");
    V v{};
    if (lanes == LANES) memcpy(&v, from, sizeof v);
    else memcpy(&v, from, lanes * sizeof(T));
    return v;
}

template <class V, class T>
static INLINE void store(T* to, V v, int lanes) {
    static_assert(sizeof(V) == LANES * sizeof(T), "one element per lane");
    if (lanes == LANES) memcpy(to, &v, sizeof v);
    else memcpy(to, &v, lanes * sizeof(T));
}

// Halves are added pairwise: fewer roundings than one long chain.
static INLINE float sum(Vec v) {
    float part[LANES];
    memcpy(part, &v, sizeof v);
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++) part[i] += part[i + half];
    return part[0];
}

// Lane j becomes a[j], or b[j - STEP] where j has the bit STEP; `upper` the same of the other halves.
template <int STEP, int... J>
static INLINE void exchange(Vec& lower, Vec& upper, std::integer_sequence<int, J...>) {
    const Vec a = lower, b = upper;
    lower = SHUFFLE(a, b, (J & STEP ? LANES + J - STEP : J)...);
    upper = SHUFFLE(a, b, (J & STEP ? LANES + J : J + STEP)...);
}

// Lane j of rows[i] and lane i of rows[j] change places, by exchanging blocks of 1, 2, 4, ... lanes.
template <int STEP = 1>
static INLINE void transpose(Vec (&rows)[LANES]) {
    UNROLL for (int i = 0; i < LANES; i++)
        if (!(i & STEP)) exchange<STEP>(rows[i], rows[i + STEP], std::make_integer_sequence<int, LANES>{});
    if constexpr (2 * STEP < LANES) transpose<2 * STEP>(rows);
}

// Calls f with n (1..MAX) as a compile-time constant, which register blocking needs.
template <int MAX, class F>
static INLINE void with_constant(int n, F&& f) {
    if constexpr (MAX > 1) {
        if (n < MAX) return with_constant<MAX - 1>(n, f);
    }
    f(std::integral_constant<int, MAX>{});
}

// Cuts `length` into the fewest parts of at most `most`, as equal as possible: part i begins at begin(i).
struct Split {
    int length, parts;
    Split(int length, int most) : length(length), parts((length + most - 1) / most) {}
    int begin(int i) const { return int(int64_t(length) * i / parts); }
    int size(int i) const { return begin(i + 1) - begin(i); }
};

}  // namespace ostraka
