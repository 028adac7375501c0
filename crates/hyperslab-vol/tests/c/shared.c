/* An MPI program whose ranks write one file in the ways that programs do: blocks, columns, chunks, nothing, fields, other types, datasets that grow,
   shrink and vanish. The file is the same whatever moved the elements: no times are kept in it. */
#include "check.h"
#include <mpi.h>

static int rank, ranks;
static hid_t together, alone;

static hid_t columns(hid_t file, const char *name, hsize_t rows, hsize_t width, hsize_t chunk_rows, hsize_t chunk_columns) {
    hsize_t size[2] = {rows, width}, chunk[2] = {chunk_rows, chunk_columns};
    hid_t space = H5Screate_simple(2, size, NULL), list = H5Pcreate(H5P_DATASET_CREATE);
    CHECK(H5Pset_obj_track_times(list, 0) >= 0);
    if (chunk_rows)
        CHECK(H5Pset_chunk(list, 2, chunk) >= 0);
    hid_t dataset = H5Dcreate2(file, name, H5T_STD_I32LE, space, H5P_DEFAULT, list, H5P_DEFAULT);
    CHECK(dataset >= 0);
    H5Sclose(space);
    H5Pclose(list);
    return dataset;
}

/* What each element is: its number in the array, and the round. */
static void box(int *data, hsize_t width, const hsize_t *start, const hsize_t *count, int round) {
    for (hsize_t row = 0; row < count[0]; row++)
        for (hsize_t column = 0; column < count[1]; column++)
            *data++ = (int)((start[0] + row) * width + start[1] + column) * 8 + round;
}

/* Moves a box of `dataset`, or nothing. */
static void move(hid_t dataset, int writes, hid_t how, const hsize_t *start, const hsize_t *count, void *data, hid_t type) {
    hid_t space = H5Dget_space(dataset), memory = H5Screate_simple(2, count, NULL);
    if (count[0] * count[1] > 0)
        CHECK(H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL) >= 0);
    else {
        H5Sselect_none(space);
        H5Sselect_none(memory);
    }
    if (writes)
        CHECK(H5Dwrite(dataset, type, memory, space, how, data) >= 0);
    else
        CHECK(H5Dread(dataset, type, memory, space, how, data) >= 0);
    H5Sclose(space);
    H5Sclose(memory);
}

static void check_box(hid_t dataset, hid_t how, hsize_t width, const hsize_t *start, const hsize_t *count, int round, const char *what) {
    size_t many = count[0] * count[1];
    int *back = calloc(many, sizeof *back), *wanted = malloc(many * sizeof *wanted);
    move(dataset, 0, how, start, count, back, H5T_NATIVE_INT);
    box(wanted, width, start, count, round);
    for (size_t at = 0; at < many; at++)
        if (back[at] != wanted[at]) {
            fprintf(stderr, "rank %d, %s: element %zu is %d and not %d\n", rank, what, at, back[at], wanted[at]);
            exit(1);
        }
    free(back);
    free(wanted);
}

/* Each rank its columns, twice: what came last counts. Then everybody reads the neighbour's. */
static void write_columns(hid_t file, const char *name, hsize_t rows, hsize_t each, hsize_t chunk_rows, hsize_t chunk_columns, hid_t how) {
    hsize_t width = each * (hsize_t)ranks, start[2] = {0, each * (hsize_t)rank}, count[2] = {rows, each};
    hid_t dataset = columns(file, name, rows, width, chunk_rows, chunk_columns);
    int *data = malloc(rows * each * sizeof *data);
    for (int round = 0; round < 3; round++) {
        box(data, width, start, count, round);
        move(dataset, 1, how, start, count, data, H5T_NATIVE_INT);
        /* It is the program's again. */
        memset(data, 0xff, rows * each * sizeof *data);
        check_box(dataset, round % 2 ? together : alone, width, start, count, round, name);
    }
    free(data);
    CHECK(H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0);
    MPI_Barrier(MPI_COMM_WORLD);
    start[1] = each * (hsize_t)((rank + 1) % ranks);
    check_box(dataset, alone, width, start, count, 2, name);
    check_box(dataset, together, width, start, count, 2, name);
    CHECK(H5Dclose(dataset) >= 0);
}

/* The last rank has nothing to write, the first two have elements of other types in memory. */
static void write_unlike(hid_t file) {
    hsize_t start[2] = {100 * (hsize_t)rank, 0}, count[2] = {rank == ranks - 1 ? 0 : 100, 50}, all[2] = {0, 0};
    hid_t dataset = columns(file, "unlike", 100 * (hsize_t)ranks, 50, 0, 0);
    int data[5000];
    long long wide[5000];
    box(data, 50, start, count, 1);
    for (int at = 0; at < 5000; at++)
        wide[at] = data[at];
    move(dataset, 1, together, start, count, rank == 0 ? (void *)wide : data, rank == 0 ? H5T_NATIVE_LLONG : H5T_NATIVE_INT);
    if (rank == 1) {
        box(data, 50, start, count, 2);
        move(dataset, 1, alone, start, count, data, H5T_NATIVE_INT);
    }
    move(dataset, 1, together, start, rank == 0 ? count : all, rank == 0 ? (void *)wide : data, rank == 0 ? H5T_NATIVE_LLONG : H5T_NATIVE_INT);
    CHECK(H5Dclose(dataset) >= 0);
}

/* One rank writes one field of all elements, the next the other. */
static void write_fields(hid_t file) {
    struct Pair {
        int a, b;
    };
    hsize_t size = 3000;
    hid_t both = H5Tcreate(H5T_COMPOUND, sizeof(struct Pair)), one = H5Tcreate(H5T_COMPOUND, sizeof(int));
    CHECK(H5Tinsert(both, "a", 0, H5T_NATIVE_INT) >= 0 && H5Tinsert(both, "b", 4, H5T_NATIVE_INT) >= 0);
    CHECK(H5Tinsert(one, rank % 2 ? "b" : "a", 0, H5T_NATIVE_INT) >= 0);
    hid_t space = H5Screate_simple(1, &size, NULL), list = H5Pcreate(H5P_DATASET_CREATE);
    CHECK(H5Pset_obj_track_times(list, 0) >= 0);
    hid_t dataset = H5Dcreate2(file, "fields", both, space, H5P_DEFAULT, list, H5P_DEFAULT);
    struct Pair pairs[3000];
    int data[3000];
    for (int at = 0; at < 3000; at++)
        pairs[at] = (struct Pair){at, -at}, data[at] = 7 * at + rank % 2;
    if (rank == 0)
        CHECK(H5Dwrite(dataset, both, H5S_ALL, H5S_ALL, alone, pairs) >= 0);
    for (int turn = 0; turn < 2; turn++) {
        CHECK(H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0);
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == turn)
            CHECK(H5Dwrite(dataset, one, H5S_ALL, H5S_ALL, alone, data) >= 0);
    }
    CHECK(H5Dclose(dataset) >= 0);
    H5Sclose(space);
    H5Pclose(list);
    H5Tclose(both);
    H5Tclose(one);
}

/* A dataset that gets a row of each rank in each step, and in the end loses some. */
static void grow(hid_t file, hid_t how) {
    hsize_t size[2] = {0, 300}, most[2] = {H5S_UNLIMITED, 300}, chunk[2] = {3, 128};
    hid_t space = H5Screate_simple(2, size, most), list = H5Pcreate(H5P_DATASET_CREATE);
    CHECK(H5Pset_obj_track_times(list, 0) >= 0 && H5Pset_chunk(list, 2, chunk) >= 0);
    hid_t dataset = H5Dcreate2(file, how == alone ? "grows alone" : "grows", H5T_STD_I32LE, space, H5P_DEFAULT, list, H5P_DEFAULT);
    int data[300];
    for (int step = 0; step < 10; step++) {
        size[0] += (hsize_t)ranks;
        CHECK(H5Dset_extent(dataset, size) >= 0);
        hsize_t start[2] = {(hsize_t)(step * ranks + rank), 0}, count[2] = {1, 300};
        box(data, 300, start, count, 3);
        move(dataset, 1, how, start, count, data, H5T_NATIVE_INT);
    }
    CHECK(H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0);
    MPI_Barrier(MPI_COMM_WORLD);
    hsize_t start[2] = {0, 0};
    check_box(dataset, alone, 300, start, size, 3, "grows");
    MPI_Barrier(MPI_COMM_WORLD);
    size[0] -= 5;
    CHECK(H5Dset_extent(dataset, size) >= 0);
    check_box(dataset, alone, 300, start, size, 3, "shrunk");
    CHECK(H5Dclose(dataset) >= 0);
    H5Sclose(space);
    H5Pclose(list);
}

/* A dataset that was just written vanishes, and others get its place. */
static void reuse(hid_t file) {
    hsize_t width = 1 << 16, rows = 8 * (hsize_t)ranks, start[2] = {8 * (hsize_t)rank, 0}, count[2] = {8, width};
    int *data = malloc(8 * width * sizeof *data);
    for (int round = 0; round < 4; round++) {
        char name[16];
        snprintf(name, sizeof name, "round %d", round);
        hid_t dataset = columns(file, name, rows, width, 0, 0);
        /* Another rank's part in each round. */
        start[0] = 8 * (hsize_t)((rank + round) % ranks);
        box(data, width, start, count, round);
        move(dataset, 1, round % 2 ? together : alone, start, count, data, H5T_NATIVE_INT);
        if (round == 3) {
            CHECK(H5Fflush(file, H5F_SCOPE_LOCAL) >= 0);
            MPI_Barrier(MPI_COMM_WORLD);
            start[0] = 0, count[0] = rows;
            check_box(dataset, alone, width, start, count, round, name);
        }
        CHECK(H5Dclose(dataset) >= 0);
        MPI_Barrier(MPI_COMM_WORLD);
        if (round < 3)
            CHECK(H5Ldelete(file, name, H5P_DEFAULT) >= 0);
    }
    free(data);
}

/* A compressed dataset, which ranks write together. */
static void packed(hid_t file) {
    hsize_t size[2] = {40 * (hsize_t)ranks, 100}, chunk[2] = {25, 100}, start[2] = {40 * (hsize_t)rank, 0}, count[2] = {40, 100};
    hid_t space = H5Screate_simple(2, size, NULL), list = H5Pcreate(H5P_DATASET_CREATE);
    CHECK(H5Pset_obj_track_times(list, 0) >= 0 && H5Pset_chunk(list, 2, chunk) >= 0);
    if (H5Zfilter_avail(H5Z_FILTER_DEFLATE) > 0)
        CHECK(H5Pset_deflate(list, 4) >= 0);
    hid_t dataset = H5Dcreate2(file, "packed", H5T_STD_I32LE, space, H5P_DEFAULT, list, H5P_DEFAULT);
    int data[4000];
    box(data, 100, start, count, 5);
    move(dataset, 1, together, start, count, data, H5T_NATIVE_INT);
    CHECK(H5Dclose(dataset) >= 0);
    H5Sclose(space);
    H5Pclose(list);
}

static void write_all(const char *path, int reads_together) {
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    CHECK(H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL) >= 0);
    CHECK(H5Pset_all_coll_metadata_ops(access, reads_together) >= 0);
    hid_t create = H5Pcreate(H5P_FILE_CREATE);
    CHECK(H5Pset_obj_track_times(create, 0) >= 0);
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, create, access);
    CHECK(file >= 0);
    H5Pclose(create);
    /* Rows of a rank are apart: pieces of 4 KiB; and of 200 bytes. */
    write_columns(file, "columns", 60, 1024, 0, 0, together);
    write_columns(file, "columns alone", 60, 1024, 0, 0, alone);
    write_columns(file, "narrow", 300, 50, 0, 0, together);
    /* One row of a rank is one piece of the file; and chunks that several ranks share. */
    write_columns(file, "blocks", 1, 100000, 0, 0, together);
    write_columns(file, "blocks alone", 1, 100000, 0, 0, alone);
    write_columns(file, "chunks", 64, 128, 32, 128, together);
    write_columns(file, "chunks alone", 64, 128, 32, 128, alone);
    write_columns(file, "shared chunks", 64, 100, 25, 150, together);
    write_columns(file, "shared chunks alone", 64, 100, 25, 150, alone);
    write_unlike(file);
    write_fields(file);
    grow(file, together);
    grow(file, alone);
    packed(file);
    reuse(file);
    CHECK(H5Fclose(file) >= 0);
    /* Opened again, by all and to be read. */
    CHECK((file = H5Fopen(path, H5F_ACC_RDONLY, access)) >= 0);
    hid_t dataset = H5Dopen2(file, "packed", H5P_DEFAULT);
    hsize_t start[2] = {0, 0}, count[2] = {40 * (hsize_t)ranks, 100};
    check_box(dataset, together, 100, start, count, 5, "packed");
    if (!reads_together)
        check_box(dataset, alone, 100, start, count, 5, "packed alone");
    CHECK(H5Dclose(dataset) >= 0);
    CHECK((dataset = H5Dopen2(file, "columns", H5P_DEFAULT)) >= 0);
    count[0] = 60, count[1] = 1024 * (hsize_t)ranks;
    check_box(dataset, alone, count[1], start, count, 2, "columns read alone");
    CHECK(H5Dclose(dataset) >= 0);
    CHECK(H5Fclose(file) >= 0);
    H5Pclose(access);
}

int main(int count, char **words) {
    char path[4096];
    CHECK(count == 2);
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    together = H5Pcreate(H5P_DATASET_XFER), alone = H5Pcreate(H5P_DATASET_XFER);
    CHECK(H5Pset_dxpl_mpio(together, H5FD_MPIO_COLLECTIVE) >= 0);
    CHECK(H5Pset_dxpl_mpio(alone, H5FD_MPIO_INDEPENDENT) >= 0);
    for (int reads_together = 0; reads_together < 2; reads_together++) {
        snprintf(path, sizeof path, "%s/shared-%d.h5", words[1], reads_together);
        write_all(path, reads_together);
    }
    H5Pclose(together);
    H5Pclose(alone);
    MPI_Finalize();
    return 0;
}
