// Memory: parts of the caller's scratch memory, and tiles of LANES images inside a border.
#pragma once

#include <cstddef>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

#include "lanes.h"

namespace ostraka {

// Hands out parts of the caller's memory, aligned for vectors; without memory it only adds up sizes. The memory
// comes from outside because the C library gives large blocks back to the system at every free, and touching fresh
// pages at every call cost a third of the time.
struct Arena {
    char* memory;
    size_t used = 0;
    explicit Arena(void* memory) : memory(static_cast<char*>(memory)) {}
    template <class T>
    T* take(size_t count) {
        const size_t align = 64, from = used;
        used += (count * sizeof(T) + align - 1) / align * align;
#ifdef __SANITIZE_ADDRESS__
        if (memory) ASAN_POISON_MEMORY_REGION(memory + used, align);
        used += align;
#endif
        return memory ? reinterpret_cast<T*>(memory + from) : nullptr;
    }
};

inline void clear(Vec* first, ptrdiff_t count) { memset(static_cast<void*>(first), 0, count * sizeof(Vec)); }

// LANES images of `height` x `width` inside a border. Without a border the pixels are one run of `size` vectors.
struct Tile {
    int channels = 0, height = 0, width = 0, border = 0;
    ptrdiff_t pitch = 0, plane = 0;  // in vectors: from row to row, from channel to channel
    Vec* pixels = nullptr;
    Tile() = default;
    Tile(Arena& arena, int channels, int height, int width, int border)
        : channels(channels), height(height), width(width), border(border), pitch(width + 2 * border),
          plane(pitch * (height + 2 * border)), pixels(arena.take<Vec>(size_t(channels) * plane)) {}
    ptrdiff_t size() const { return ptrdiff_t(channels) * height * width; }
    Vec* corner(int channel) const { return pixels + channel * plane; }  // of the border
    Vec* inside(int channel, int row) const { return corner(channel) + (row + border) * pitch + border; }
    // Clears all but the first `rows` x `cols` pixels, which every block of images overwrites.
    void clear_around(int rows, int cols) const {
        if (!border && rows == height && cols == width) return;
        for (int c = 0; c < channels; c++) {
            clear(corner(c), border * pitch);
            for (int y = 0; y < rows; y++) {
                clear(inside(c, y) - border, border);
                clear(inside(c, y) + cols, width - cols + border);
            }
            clear(inside(c, rows) - border, (height - rows + border) * pitch);
        }
    }
};

// Up to LANES values of all images, read from images that lie one after the other (`distance` floats apart).
INLINE void gather(const float* from, ptrdiff_t distance, int lanes, int count, Vec* to) {
    Vec rows[LANES];
    UNROLL for (int i = 0; i < LANES; i++) rows[i] = i < lanes ? load<Vec>(from + i * distance, count) : Vec{};
    transpose(rows);
    if (count == LANES) {
        UNROLL for (int i = 0; i < LANES; i++) to[i] = rows[i];
    } else {
        for (int i = 0; i < count; i++) to[i] = rows[i];
    }
}

// The way back.
INLINE void scatter(const Vec* from, int count, float* to, ptrdiff_t distance, int lanes) {
    Vec rows[LANES];
    UNROLL for (int i = 0; i < LANES; i++) rows[i] = i < count ? from[i] : Vec{};
    transpose(rows);
    for (int i = 0; i < lanes; i++) store(to + i * distance, rows[i], count);
}

// Calls f(start, count) for steps of LANES values; the last may go over some values again.
template <class F>
INLINE void in_steps(ptrdiff_t length, F f) {
    if (length < LANES) return f(ptrdiff_t(0), int(length));
    for (ptrdiff_t at = 0; at < length; at += LANES) f(at + LANES <= length ? at : length - LANES, LANES);
}

// Calls f(offset in an image, vectors, length) for every run of pixels that lies in one piece in both.
template <class F>
INLINE void runs(const Tile& tile, F f) {
    if (!tile.border) return f(ptrdiff_t(0), tile.pixels, tile.size());
    for (int c = 0; c < tile.channels; c++)
        for (int y = 0; y < tile.height; y++)
            f((ptrdiff_t(c) * tile.height + y) * tile.width, tile.inside(c, y), ptrdiff_t(tile.width));
}

inline void copy_in(const float* images, int lanes, const Tile& tile) {
    runs(tile, [&](ptrdiff_t offset, Vec* to, ptrdiff_t length) {
        in_steps(length, [&](ptrdiff_t at, int count) {
            gather(images + offset + at, tile.size(), lanes, count, to + at);
        });
    });
}

inline void copy_out(const Tile& tile, int lanes, float* images) {
    runs(tile, [&](ptrdiff_t offset, const Vec* from, ptrdiff_t length) {
        in_steps(length, [&](ptrdiff_t at, int count) {
            scatter(from + at, count, images + offset + at, tile.size(), lanes);
        });
    });
}

}  // namespace ostraka
