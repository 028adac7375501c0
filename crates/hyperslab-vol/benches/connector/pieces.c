/* Small and large calls of libhdf5: ACTION FILE CALLS. Prints the seconds that they took; `tiny` and `large`: of
   each call, by libhdf5 and by a connector. */
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PIECE 1024 /* numbers in 4 KiB */
#define LARGE (1 << 18) /* numbers in 1 MiB */

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void check(int64_t result, const char *what) {
    if (result < 0) {
        fprintf(stderr, "%s failed\n", what);
        exit(1);
    }
}

/* Another order than that of the file: an odd step over a power of two meets every place once. */
static hsize_t place(hsize_t number, hsize_t calls) { return (number * 7919 + 13) % calls; }

static void fill(int *piece, hsize_t where) {
    for (int i = 0; i < PIECE; i++) piece[i] = (int)(where * PIECE + (hsize_t)i);
}

static hid_t create(hid_t file, hsize_t count) {
    hid_t space = H5Screate_simple(1, &count, NULL);
    hid_t dataset = H5Dcreate2(file, "x", H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    check(dataset, "H5Dcreate2");
    H5Sclose(space);
    return dataset;
}

static double write_pieces(const char *path, hsize_t calls) {
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    check(file, "H5Fcreate");
    hid_t dataset = create(file, calls * PIECE);
    hsize_t count = PIECE;
    hid_t memory = H5Screate_simple(1, &count, NULL), space = H5Dget_space(dataset);
    static int piece[PIECE];
    double start = now();
    for (hsize_t n = 0; n < calls; n++) {
        hsize_t where = place(n, calls), first = where * PIECE;
        fill(piece, where);
        H5Sselect_hyperslab(space, H5S_SELECT_SET, &first, NULL, &count, NULL);
        check(H5Dwrite(dataset, H5T_NATIVE_INT, memory, space, H5P_DEFAULT, piece), "H5Dwrite");
    }
    check(H5Dclose(dataset), "H5Dclose");
    H5Sclose(memory);
    H5Sclose(space);
    check(H5Fclose(file), "H5Fclose");
    return now() - start;
}

static double verify(const char *path, hsize_t calls) {
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    check(file, "H5Fopen");
    hid_t dataset = H5Dopen2(file, "x", H5P_DEFAULT);
    check(dataset, "H5Dopen2");
    int *all = malloc(calls * PIECE * sizeof(int)), piece[PIECE];
    check(H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, all), "H5Dread");
    for (hsize_t n = 0; n < calls; n++) {
        fill(piece, n);
        if (memcmp(piece, all + n * PIECE, sizeof piece) != 0) {
            fprintf(stderr, "piece %llu is wrong\n", (unsigned long long)n);
            exit(1);
        }
    }
    free(all);
    H5Dclose(dataset);
    H5Fclose(file);
    return 0;
}

/* A file of CALLS MiB. */
static double prepare(const char *path, hsize_t calls) {
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hid_t dataset = create(file, calls * LARGE);
    int *all = calloc(calls * LARGE, sizeof(int));
    check(H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, all), "H5Dwrite");
    free(all);
    H5Dclose(dataset);
    check(H5Fclose(file), "H5Fclose");
    return 0;
}

/* A file and its dataset, opened by a connector, or by that of the environment. */
struct opened {
    hid_t file, dataset;
    double seconds;
};

static struct opened open_by(const char *path, hid_t access) {
    struct opened it = {H5Fopen(path, H5F_ACC_RDWR, access), H5I_INVALID_HID, 0};
    check(it.file, "H5Fopen");
    it.dataset = H5Dopen2(it.file, "x", H5P_DEFAULT);
    check(it.dataset, "H5Dopen2");
    return it;
}

/* The same calls by libhdf5 itself and by the connector of the environment, in short turns within one process: processes differ
   by more than what is measured. Prints the seconds of a call of each. */
static void each_call(const char *path, hsize_t calls, hsize_t count, int also_write) {
    hid_t native = H5Pcreate(H5P_FILE_ACCESS);
    check(H5Pset_vol(native, H5VL_NATIVE, NULL), "H5Pset_vol");
    struct opened by[2] = {open_by(path, native), open_by(path, H5P_DEFAULT)};
    hid_t memory = H5Screate_simple(1, &count, NULL), space = H5Dget_space(by[0].dataset);
    hsize_t total = (hsize_t)H5Sget_simple_extent_npoints(space), turns = 64, each = calls / turns;
    int *piece = malloc(count * sizeof(int));
    for (hsize_t turn = 0; turn < 2 * turns; turn++) {
        struct opened *one = &by[(turn + turn / 2) % 2]; /* who goes first changes */
        double start = now();
        for (hsize_t n = turn / 2 * each; n < (turn / 2 + 1) * each; n++) {
            hsize_t first = n * count % (total - count + 1);
            H5Sselect_hyperslab(space, H5S_SELECT_SET, &first, NULL, &count, NULL);
            check(H5Dread(one->dataset, H5T_NATIVE_INT, memory, space, H5P_DEFAULT, piece), "H5Dread");
            if (also_write) check(H5Dwrite(one->dataset, H5T_NATIVE_INT, memory, space, H5P_DEFAULT, piece), "H5Dwrite");
        }
        one->seconds += now() - start;
    }
    free(piece);
    H5Sclose(memory);
    H5Sclose(space);
    for (int i = 0; i < 2; i++) {
        H5Dclose(by[i].dataset);
        check(H5Fclose(by[i].file), "H5Fclose");
        by[i].seconds /= (double)(turns * each * (also_write ? 2 : 1));
    }
    H5Pclose(native);
    printf("%.9f %.9f\n", by[0].seconds, by[1].seconds);
}

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    hsize_t calls = strtoull(argv[3], NULL, 10);
    double seconds;
    if (strcmp(argv[1], "write") == 0) seconds = write_pieces(argv[2], calls);
    else if (strcmp(argv[1], "verify") == 0) seconds = verify(argv[2], calls);
    else if (strcmp(argv[1], "prepare") == 0) seconds = prepare(argv[2], calls);
    else if (strcmp(argv[1], "tiny") == 0) return each_call(argv[2], calls, 2, 0), 0;
    else if (strcmp(argv[1], "large") == 0) return each_call(argv[2], calls, LARGE, 1), 0;
    else return 2;
    printf("%.9f\n", seconds);
    return 0;
}
