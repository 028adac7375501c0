/* The asynchronous calls of HDF5 with event sets. */
#include "check.h"

int main(int count, char **words) {
    CHECK(count == 2);
    char path[4096];
    snprintf(path, sizeof path, "%s/events.h5", words[1]);
    static int data[2][N], back[2][N];
    hsize_t size = N, chunk = 1500;
    size_t running = 99;
    hbool_t failed = 1;
    hid_t events = H5EScreate();
    CHECK(events >= 0);
    hid_t file = H5Fcreate_async(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT, events);
    CHECK(file >= 0);
    hid_t space = H5Screate_simple(1, &size, NULL), list = H5Pcreate(H5P_DATASET_CREATE), dataset[2];
    dataset[0] = H5Dcreate_async(file, "plain", H5T_STD_I32LE, space, H5P_DEFAULT, list, H5P_DEFAULT, events);
    CHECK(H5Pset_chunk(list, 1, &chunk) >= 0 && H5Pset_deflate(list, 1) >= 0);
    dataset[1] = H5Dcreate_async(file, "packed", H5T_STD_I32LE, space, H5P_DEFAULT, list, H5P_DEFAULT, events);
    for (int round = 0; round < 5; round++)
        for (int at = 0; at < 2; at++) {
            CHECK(dataset[at] >= 0);
            fill(data[at], N, round * 7 + at);
            CHECK(H5Dwrite_async(dataset[at], H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, data[at], events) >= 0);
            CHECK(H5ESwait(events, H5ES_WAIT_FOREVER, &running, &failed) >= 0 && running == 0 && !failed);
        }
    for (int at = 0; at < 2; at++)
        CHECK(H5Dread_async(dataset[at], H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, back[at], events) >= 0);
    CHECK(H5ESwait(events, H5ES_WAIT_FOREVER, &running, &failed) >= 0 && running == 0 && !failed);
    for (int at = 0; at < 2; at++)
        expect(back[at], N, 28 + at);
    /* What fails is in the set or is told at once. */
    H5E_BEGIN_TRY {
        hid_t wrong = H5Dopen_async(file, "missing", H5P_DEFAULT, events);
        CHECK(H5ESwait(events, H5ES_WAIT_FOREVER, &running, &failed) >= 0 && (wrong < 0 || failed));
    }
    H5E_END_TRY
    for (int at = 0; at < 2; at++)
        CHECK(H5Dclose_async(dataset[at], events) >= 0);
    CHECK(H5Fclose_async(file, events) >= 0);
    CHECK(H5ESwait(events, H5ES_WAIT_FOREVER, &running, &failed) >= 0 && running == 0);
    CHECK(H5ESclose(events) >= 0);
    H5Sclose(space);
    H5Pclose(list);
    return 0;
}
