/* The asynchronous calls of HDF5 with event sets. Where writes go on in the background, they are counted until they are waited for,
   and their errors are in the set. */
#include <signal.h>
#include <sys/resource.h>
#include "check.h"

static size_t waiting(hid_t events) {
    size_t number = 99;
    CHECK(H5ESget_count(events, &number) >= 0);
    return number;
}

static void wait_for_all(hid_t events) {
    size_t running = 99;
    hbool_t failed = 1;
    CHECK(H5ESwait(events, H5ES_WAIT_FOREVER, &running, &failed) >= 0 && running == 0 && !failed);
    CHECK(waiting(events) == 0);
}

/* A read that was begun before a write has what was there before. */
static void keeps_order(hid_t dataset, hid_t events, int in_background) {
    static int first[N], second[N], back[N], again[N];
    fill(first, N, 1);
    fill(second, N, 2);
    CHECK(H5Dwrite_async(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, first, events) >= 0);
    CHECK(H5Dread_async(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, back, events) >= 0);
    CHECK(!in_background || waiting(events) == 2);
    CHECK(H5Dwrite_async(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, second, events) >= 0);
    CHECK(H5Dread_async(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, again, events) >= 0);
    /* Memory of writes may be used again, as it may after a write that was waited for. */
    wait_for_all(events);
    expect(back, N, 1);
    expect(again, N, 2);
}

/* A write that the system refuses: the set has its error, and the next close of the file tells it once more. */
static void tells_errors(hid_t events, const char *folder) {
    char path[4096];
    static int data[N];
    snprintf(path, sizeof path, "%s/refused.h5", folder);
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), dataset = make(file, "x", 0);
    CHECK(H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0 && H5Fflush(file, H5F_SCOPE_LOCAL) >= 0);
    struct rlimit before, none;
    size_t running = 99, errors = 99, cleared = 0;
    hbool_t failed = 0;
    H5ES_err_info_t info;
    CHECK(getrlimit(RLIMIT_FSIZE, &before) == 0 && signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
    none = before;
    none.rlim_cur = 1;
    CHECK(setrlimit(RLIMIT_FSIZE, &none) == 0);
    H5E_BEGIN_TRY {
        CHECK(H5Dwrite_async(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, data, events) >= 0);
        CHECK(H5ESwait(events, H5ES_WAIT_FOREVER, &running, &failed) >= 0);
    }
    H5E_END_TRY
    CHECK(setrlimit(RLIMIT_FSIZE, &before) == 0);
    CHECK(failed && H5ESget_err_count(events, &errors) >= 0 && errors == 1);
    CHECK(H5ESget_err_info(events, 1, &info, &cleared) >= 0 && cleared == 1);
    CHECK(info.err_stack_id >= 0 && H5Eget_num(info.err_stack_id) > 0);
    CHECK(strcmp(info.api_name, "H5Dwrite_async") == 0);
    CHECK(H5Eclose_stack(info.err_stack_id) >= 0);
    H5free_memory(info.api_name);
    H5free_memory(info.api_args);
    H5free_memory(info.app_file_name);
    H5free_memory(info.app_func_name);
    CHECK(H5Dclose(dataset) >= 0);
    H5E_BEGIN_TRY {
        CHECK(H5Fclose(file) < 0 && H5Fclose(file) >= 0);
    }
    H5E_END_TRY
}

int main(int count, char **words) {
    CHECK(count == 2);
    char path[4096];
    const char *connector = getenv("HDF5_VOL_CONNECTOR");
    int in_background = connector && strstr(connector, "async");
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
            CHECK(!in_background || waiting(events) == 1);
            CHECK(H5ESwait(events, H5ES_WAIT_FOREVER, &running, &failed) >= 0 && running == 0 && !failed);
        }
    for (int at = 0; at < 2; at++)
        CHECK(H5Dread_async(dataset[at], H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, back[at], events) >= 0);
    CHECK(H5ESwait(events, H5ES_WAIT_FOREVER, &running, &failed) >= 0 && running == 0 && !failed);
    for (int at = 0; at < 2; at++)
        expect(back[at], N, 28 + at);
    keeps_order(dataset[0], events, in_background);
    keeps_order(dataset[1], events, in_background);
    if (in_background)
        tells_errors(events, words[1]);
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
