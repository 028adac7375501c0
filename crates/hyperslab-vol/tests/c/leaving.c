/* leaving FOLDER HOW: a program that leaves files open, in several ways. */
#include "check.h"
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static hid_t file, dataset[2];
static int data[N];

static void at_the_end(void) {
    /* Registered before HDF5 was used, so it runs after HDF5 has closed everything. */
    printf("handler\n");
}

static void on_signal(int number) {
    (void)number;
    exit(0);
}

int main(int count, char **words) {
    CHECK(count == 3);
    const char *how = words[2];
    char path[4096];
    atexit(at_the_end);
    snprintf(path, sizeof path, "%s/leaving.h5", words[1]);
    CHECK((file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT)) >= 0);
    fill(data, N, 0);
    for (int at = 0; at < 2; at++) {
        dataset[at] = make(file, at ? "packed" : "plain", at);
        CHECK(H5Dwrite(dataset[at], H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0);
    }
    if (!strcmp(how, "return"))
        return 0;
    if (!strcmp(how, "exit"))
        exit(0);
    if (!strcmp(how, "signal")) {
        signal(SIGUSR1, on_signal);
        raise(SIGUSR1);
    }
    if (!strcmp(how, "library")) {
        CHECK(H5close() >= 0);
        /* It begins again. */
        CHECK((file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT)) >= 0);
        CHECK((dataset[0] = H5Dopen2(file, "plain", H5P_DEFAULT)) >= 0);
        CHECK(H5Dwrite(dataset[0], H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0);
        CHECK(H5close() >= 0);
        return 0;
    }
    if (!strcmp(how, "file")) {
        /* The file is closed before its datasets. */
        CHECK(H5Fclose(file) >= 0);
        fill(data, N, 0);
        for (int at = 0; at < 2; at++) {
            CHECK(H5Dwrite(dataset[at], H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0);
            CHECK(H5Dclose(dataset[at]) >= 0);
        }
        return 0;
    }
    if (!strcmp(how, "fork")) {
        CHECK(H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0);
        pid_t child = fork();
        if (child == 0) {
            static int back[N];
            CHECK(H5Dread(dataset[1], H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, back) >= 0);
            expect(back, N, 0);
            snprintf(path, sizeof path, "%s/child.h5", words[1]);
            hid_t own = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
            hid_t mine = make(own, "packed", 1);
            CHECK(H5Dwrite(mine, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0);
            CHECK(H5Dclose(mine) >= 0 && H5Fclose(own) >= 0);
            _exit(0);
        }
        for (int at = 0; at < 2; at++)
            CHECK(H5Dwrite(dataset[at], H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0);
        int status = 1;
        CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
        for (int at = 0; at < 2; at++)
            CHECK(H5Dclose(dataset[at]) >= 0);
        CHECK(H5Fclose(file) >= 0);
        return 0;
    }
    return 2;
}
