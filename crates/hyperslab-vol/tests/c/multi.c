/* Several datasets in one call, of one and of two files, with pending writes before and between. */
#include "check.h"

int main(int count, char **words) {
    CHECK(count == 2);
    char path[2][4096];
    hid_t file[2], dataset[4], type[4], space[4];
    static int data[4][N], back[4][N];
    const void *from[4];
    void *into[4];
    for (int at = 0; at < 2; at++) {
        snprintf(path[at], sizeof path[at], "%s/multi%d.h5", words[1], at);
        CHECK((file[at] = H5Fcreate(path[at], H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT)) >= 0);
    }
    for (int at = 0; at < 4; at++) {
        dataset[at] = make(file[at / 2], at % 2 ? "packed" : "plain", at % 2);
        type[at] = H5T_NATIVE_INT;
        space[at] = H5S_ALL;
        fill(data[at], N, at);
        from[at] = data[at];
        into[at] = back[at];
        CHECK(H5Dwrite(dataset[at], H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, data[3 - at]) >= 0);
    }
    for (int round = 0; round < 2; round++) {
        /* The two datasets of each file. */
        for (int at = 0; at < 4; at += 2)
            CHECK(H5Dwrite_multi(2, dataset + at, type, space, space, H5P_DEFAULT, from + at) >= 0);
        for (int at = 0; at < 4; at += 2)
            CHECK(H5Dread_multi(2, dataset + at, type, space, space, H5P_DEFAULT, into + at) >= 0);
        for (int at = 0; at < 4; at++)
            expect(back[at], N, at);
    }
    /* Selections of different sizes, and nothing of one. */
    hid_t part[2], memory[2];
    hsize_t size = N, start = 100, many = 50;
    for (int at = 0; at < 2; at++) {
        part[at] = H5Screate_simple(1, &size, NULL);
        memory[at] = H5Screate_simple(1, &many, NULL);
    }
    CHECK(H5Sselect_hyperslab(part[0], H5S_SELECT_SET, &start, NULL, &many, NULL) >= 0);
    CHECK(H5Sselect_none(part[1]) >= 0 && H5Sselect_none(memory[1]) >= 0);
    CHECK(H5Dwrite_multi(2, dataset, type, memory, part, H5P_DEFAULT, from) >= 0);
    CHECK(H5Dread(dataset[0], H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, back[0]) >= 0);
    expect(back[0] + 100, 50, 0);
    expect(back[0] + 150, N - 150, 150);
    for (int at = 0; at < 4; at++)
        CHECK(H5Dclose(dataset[at]) >= 0);
    for (int at = 0; at < 2; at++)
        CHECK(H5Fclose(file[at]) >= 0);
    return 0;
}
