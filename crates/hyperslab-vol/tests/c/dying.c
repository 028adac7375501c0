/* An MPI program that dies: `dying FOLDER die` writes columns and a dataset that grows, of which one rank is killed before it flushes the last of
   them; `dying FOLDER check` expects everything that was written. */
#include "check.h"
#include <mpi.h>
#include <signal.h>
#include <unistd.h>

#define ROWS 50
#define EACH 1024

static int rank, ranks;

static void each(hid_t dataset, int dies, int step, hid_t how) {
    hsize_t start[2] = {(hsize_t)step * ROWS, EACH * (hsize_t)rank}, count[2] = {ROWS, EACH};
    static int data[ROWS * EACH], wanted[ROWS * EACH];
    hid_t space = H5Dget_space(dataset), memory = H5Screate_simple(2, count, NULL);
    fill(wanted, ROWS * EACH, 1000000 * step + 100000 * rank);
    CHECK(H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL) >= 0);
    if (dies) {
        memcpy(data, wanted, sizeof data);
        CHECK(H5Dwrite(dataset, H5T_NATIVE_INT, memory, space, how, data) >= 0);
        memset(data, 0xff, sizeof data);
    }
    /* A read by all ranks together would bring what they hold to the file. */
    CHECK(H5Dread(dataset, H5T_NATIVE_INT, memory, space, dies ? H5P_DEFAULT : how, data) >= 0);
    if (memcmp(data, wanted, sizeof data) != 0) {
        fprintf(stderr, "rank %d: step %d is not what was written\n", rank, step);
        exit(1);
    }
    H5Sclose(space);
    H5Sclose(memory);
}

int main(int count, char **words) {
    char path[4096];
    CHECK(count == 3);
    int dies = strcmp(words[2], "die") == 0;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    snprintf(path, sizeof path, "%s/dying.h5", words[1]);
    hid_t access = H5Pcreate(H5P_FILE_ACCESS), together = H5Pcreate(H5P_DATASET_XFER), list = H5Pcreate(H5P_DATASET_CREATE);
    CHECK(H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL) >= 0);
    CHECK(H5Pset_dxpl_mpio(together, H5FD_MPIO_COLLECTIVE) >= 0);
    hid_t file = dies ? H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, access) : H5Fopen(path, H5F_ACC_RDONLY, access);
    CHECK(file >= 0);
    hsize_t size[2] = {ROWS * 3, EACH * (hsize_t)ranks}, most[2] = {H5S_UNLIMITED, size[1]}, chunk[2] = {20, 1000};
    hid_t space = H5Screate_simple(2, size, NULL), first, grows;
    if (dies) {
        CHECK((first = H5Dcreate2(file, "first", H5T_STD_I32LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)) >= 0);
        size[0] = 0;
        hid_t none = H5Screate_simple(2, size, most);
        CHECK(H5Pset_chunk(list, 2, chunk) >= 0);
        CHECK((grows = H5Dcreate2(file, "grows", H5T_STD_I32LE, none, H5P_DEFAULT, list, H5P_DEFAULT)) >= 0);
    } else {
        CHECK((first = H5Dopen2(file, "first", H5P_DEFAULT)) >= 0);
        CHECK((grows = H5Dopen2(file, "grows", H5P_DEFAULT)) >= 0);
    }
    for (int step = 0; step < 3; step++) {
        if (dies && step < 2) {
            size[0] = ROWS * (hsize_t)(step ? 3 : 1);
            CHECK(H5Dset_extent(grows, size) >= 0);
        }
        each(first, dies, step, step % 2 ? together : H5P_DEFAULT);
        each(grows, dies, step, step % 2 ? H5P_DEFAULT : together);
        if (dies && step == 0)
            CHECK(H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (dies) {
        if (rank == ranks - 1)
            raise(SIGKILL);
        /* The launcher ends the others. */
        sleep(60);
    }
    CHECK(H5Dclose(first) >= 0 && H5Dclose(grows) >= 0 && H5Fclose(file) >= 0);
    MPI_Finalize();
    return 0;
}
