/* An MPI program on the mpio driver: contiguous, chunked and compressed datasets, written together and alone. */
#include "check.h"
#include <mpi.h>

int main(int count, char **words) {
    int rank, ranks;
    char path[4096];
    static int data[N], back[N];
    CHECK(count == 2);
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    snprintf(path, sizeof path, "%s/ranks.h5", words[1]);
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    CHECK(H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL) >= 0);
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, access);
    CHECK(file >= 0);
    hid_t together = H5Pcreate(H5P_DATASET_XFER), alone = H5Pcreate(H5P_DATASET_XFER);
    CHECK(H5Pset_dxpl_mpio(together, H5FD_MPIO_COLLECTIVE) >= 0);
    CHECK(H5Pset_dxpl_mpio(alone, H5FD_MPIO_INDEPENDENT) >= 0);
    hsize_t size = (hsize_t)N * (hsize_t)ranks, mine = N, start = (hsize_t)N * (hsize_t)rank, chunk = 7000;
    const char *names[] = {"contiguous", "chunked", "packed"};
    for (int sort = 0; sort < 3; sort++) {
        hid_t space = H5Screate_simple(1, &size, NULL), memory = H5Screate_simple(1, &mine, NULL);
        hid_t list = H5Pcreate(H5P_DATASET_CREATE);
        if (sort)
            CHECK(H5Pset_chunk(list, 1, &chunk) >= 0);
        if (sort == 2)
            CHECK(H5Pset_deflate(list, 1) >= 0);
        hid_t dataset = H5Dcreate2(file, names[sort], H5T_STD_I32LE, space, H5P_DEFAULT, list, H5P_DEFAULT);
        CHECK(dataset >= 0);
        CHECK(H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, NULL, &mine, NULL) >= 0);
        for (int round = 0; round < 4; round++) {
            /* Compressed chunks are written together only. */
            hid_t how = round % 2 && sort < 2 ? alone : together;
            fill(data, N, (int)start + round);
            CHECK(H5Dwrite(dataset, H5T_NATIVE_INT, memory, space, how, data) >= 0);
            CHECK(H5Dread(dataset, H5T_NATIVE_INT, memory, space, how, back) >= 0);
            expect(back, N, (int)start + round);
        }
        /* What another rank has written, after both have said so. */
        CHECK(H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0);
        MPI_Barrier(MPI_COMM_WORLD);
        hsize_t other = (hsize_t)N * (hsize_t)((rank + 1) % ranks);
        CHECK(H5Sselect_hyperslab(space, H5S_SELECT_SET, &other, NULL, &mine, NULL) >= 0);
        CHECK(H5Dread(dataset, H5T_NATIVE_INT, memory, space, together, back) >= 0);
        expect(back, N, (int)other + 3);
        CHECK(H5Dclose(dataset) >= 0);
        H5Sclose(space);
        H5Sclose(memory);
        H5Pclose(list);
    }
    CHECK(H5Fclose(file) >= 0);
    H5Pclose(access);
    H5Pclose(together);
    H5Pclose(alone);
    /* Each rank reads all of it, without the others. */
    CHECK((file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT)) >= 0);
    int *all = malloc(size * sizeof *all);
    for (int sort = 0; sort < 3; sort++) {
        hid_t dataset = H5Dopen2(file, names[sort], H5P_DEFAULT);
        CHECK(H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, all) >= 0);
        for (int of = 0; of < ranks; of++)
            expect(all + (size_t)of * N, N, of * N + 3);
        CHECK(H5Dclose(dataset) >= 0);
    }
    free(all);
    CHECK(H5Fclose(file) >= 0);
    MPI_Finalize();
    return 0;
}
