/* reading FOLDER NAME: holds both datasets of a file against 0, 1, 2, ... */
#include "check.h"

int main(int count, char **words) {
    CHECK(count == 3);
    char path[4096];
    static int back[N];
    snprintf(path, sizeof path, "%s/%s.h5", words[1], words[2]);
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    CHECK(file >= 0);
    const char *names[] = {"plain", "packed"};
    for (int at = 0; at < 2; at++) {
        hid_t dataset = H5Dopen2(file, names[at], H5P_DEFAULT);
        CHECK(dataset >= 0);
        CHECK(H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, back) >= 0);
        expect(back, N, 0);
        CHECK(H5Dclose(dataset) >= 0);
    }
    CHECK(H5Fclose(file) >= 0);
    return 0;
}
