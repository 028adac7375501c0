/* One process writes, another reads what was flushed; a pipe says when. */
#include "check.h"
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS 10
#define STEP 50

static void reader(const char *path, int ready, int done) {
    char byte;
    static int back[ROUNDS * STEP];
    CHECK(read(ready, &byte, 1) == 1);
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY | H5F_ACC_SWMR_READ, H5P_DEFAULT);
    CHECK(file >= 0);
    hid_t dataset = H5Dopen2(file, "growing", H5P_DEFAULT);
    CHECK(dataset >= 0);
    for (int round = 1; round <= ROUNDS; round++) {
        CHECK(write(done, "x", 1) == 1 && read(ready, &byte, 1) == 1);
        CHECK(H5Drefresh(dataset) >= 0);
        hid_t space = H5Dget_space(dataset);
        hsize_t size = 0;
        CHECK(H5Sget_simple_extent_dims(space, &size, NULL) == 1 && size >= (hsize_t)(round * STEP));
        CHECK(H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, space, H5P_DEFAULT, back) >= 0);
        expect(back, (size_t)(round * STEP), 0);
        H5Sclose(space);
    }
    CHECK(H5Dclose(dataset) >= 0 && H5Fclose(file) >= 0);
    exit(0);
}

int main(int count, char **words) {
    CHECK(count == 2);
    char path[4096], byte;
    int ready[2], done[2], data[STEP];
    snprintf(path, sizeof path, "%s/swmr.h5", words[1]);
    CHECK(pipe(ready) == 0 && pipe(done) == 0);
    pid_t child = fork();
    if (child == 0)
        reader(path, ready[0], done[1]);
    hid_t access = H5Pcreate(H5P_FILE_ACCESS), list = H5Pcreate(H5P_DATASET_CREATE);
    CHECK(H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST) >= 0);
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, access);
    CHECK(file >= 0);
    hsize_t none = 0, most = H5S_UNLIMITED, chunk = 64, step = STEP;
    hid_t space = H5Screate_simple(1, &none, &most), memory = H5Screate_simple(1, &step, NULL);
    CHECK(H5Pset_chunk(list, 1, &chunk) >= 0);
    hid_t dataset = H5Dcreate2(file, "growing", H5T_STD_I32LE, space, H5P_DEFAULT, list, H5P_DEFAULT);
    CHECK(dataset >= 0 && H5Fstart_swmr_write(file) >= 0);
    CHECK(write(ready[1], "x", 1) == 1);
    for (int round = 1; round <= ROUNDS; round++) {
        CHECK(read(done[0], &byte, 1) == 1);
        hsize_t size = (hsize_t)round * STEP, start = size - STEP;
        CHECK(H5Dset_extent(dataset, &size) >= 0);
        hid_t now = H5Dget_space(dataset);
        CHECK(H5Sselect_hyperslab(now, H5S_SELECT_SET, &start, NULL, &step, NULL) >= 0);
        fill(data, STEP, (int)start);
        CHECK(H5Dwrite(dataset, H5T_NATIVE_INT, memory, now, H5P_DEFAULT, data) >= 0);
        CHECK(H5Dflush(dataset) >= 0);
        H5Sclose(now);
        CHECK(write(ready[1], "x", 1) == 1);
    }
    int status = 1;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(H5Dclose(dataset) >= 0 && H5Fclose(file) >= 0);
    H5Sclose(space);
    H5Sclose(memory);
    H5Pclose(list);
    H5Pclose(access);
    return 0;
}
