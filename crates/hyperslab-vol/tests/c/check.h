/* What the C programs of the tests share: a call that must not fail, and data that follow from a number. */
#ifndef CHECK_H
#define CHECK_H
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N 20000

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                                            \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

static inline void fill(int *data, size_t count, int start) {
    for (size_t at = 0; at < count; at++)
        data[at] = start + (int)at;
}

static inline void expect(const int *data, size_t count, int start) {
    for (size_t at = 0; at < count; at++)
        if (data[at] != start + (int)at) {
            fprintf(stderr, "element %zu is %d and not %d\n", at, data[at], start + (int)at);
            exit(1);
        }
}

/* A dataset of N integers, contiguous or in compressed chunks. */
static inline hid_t make(hid_t file, const char *name, int packed) {
    hsize_t size = N, chunk = 1500;
    hid_t space = H5Screate_simple(1, &size, NULL), list = H5Pcreate(H5P_DATASET_CREATE);
    if (packed) {
        CHECK(H5Pset_chunk(list, 1, &chunk) >= 0);
        if (H5Zfilter_avail(H5Z_FILTER_DEFLATE) > 0)
            CHECK(H5Pset_deflate(list, 4) >= 0);
        CHECK(H5Pset_shuffle(list) >= 0);
    }
    hid_t dataset = H5Dcreate2(file, name, H5T_STD_I32LE, space, H5P_DEFAULT, list, H5P_DEFAULT);
    CHECK(dataset >= 0);
    H5Sclose(space);
    H5Pclose(list);
    return dataset;
}
#endif
