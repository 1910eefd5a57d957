#include "metrics/process_metrics.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/alloc.h"

struct cr_process_metrics {
    struct cr_metric *cpu;
    struct cr_metric *resident;
    struct cr_metric *virtual_memory;
    struct cr_metric *open_fds;
    struct cr_metric *max_fds;
    struct cr_metric *start_time;
    double cpu_seconds; /* counted so far */
};

/* Fields of /proc/self/stat (proc(5)). */
struct stat_line {
    unsigned long user_ticks, system_ticks;
    unsigned long long start_ticks; /* after boot */
    unsigned long virtual_bytes;
    long resident_pages;
};

static bool read_stat(struct stat_line *out)
{
    char line[1024];
    FILE *file = fopen("/proc/self/stat", "re");
    if (!file)
        return false;
    size_t len = fread(line, 1, sizeof line - 1, file);
    (void)fclose(file);
    line[len] = '\0';
    const char *rest = strrchr(line, ')'); /* the program's name may have any character */
    return rest &&
           sscanf(rest + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %*d %*d %*d %*d %*d %*d %llu %lu %ld",
                  &out->user_ticks, &out->system_ticks, &out->start_ticks, &out->virtual_bytes,
                  &out->resident_pages) == 5;
}

/* Seconds since the epoch, 0: not known. */
static double boot_time(void)
{
    char line[256];
    unsigned long long seconds = 0;
    FILE *file = fopen("/proc/stat", "re");
    if (!file)
        return 0;
    while (fgets(line, sizeof line, file))
        if (sscanf(line, "btime %llu", &seconds) == 1)
            break;
    (void)fclose(file);
    return (double)seconds;
}

/* -1: not known. */
static int count_fds(void)
{
    DIR *folder = opendir("/proc/self/fd");
    if (!folder)
        return -1;
    int count = -1; /* the folder's own */
    for (const struct dirent *entry; (entry = readdir(folder));)
        count += entry->d_name[0] != '.';
    (void)closedir(folder);
    return count;
}

static void collect_stat(struct cr_process_metrics *process)
{
    struct stat_line stat;
    if (!read_stat(&stat))
        return;
    double tick = 1.0 / (double)sysconf(_SC_CLK_TCK);
    double cpu_seconds = (double)(stat.user_ticks + stat.system_ticks) * tick;
    cr_metric_add(process->cpu, NULL, cpu_seconds - process->cpu_seconds); /* a counter takes nothing below 0 */
    process->cpu_seconds = cpu_seconds;
    cr_metric_set(process->resident, NULL, (double)stat.resident_pages * (double)sysconf(_SC_PAGESIZE));
    cr_metric_set(process->virtual_memory, NULL, (double)stat.virtual_bytes);
    double boot = boot_time();
    if (boot > 0)
        cr_metric_set(process->start_time, NULL, boot + (double)stat.start_ticks * tick);
}

static void collect_fds(const struct cr_process_metrics *process)
{
    struct rlimit limit;
    int open = count_fds();
    if (open >= 0)
        cr_metric_set(process->open_fds, NULL, open);
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
        cr_metric_set(process->max_fds, NULL, limit.rlim_cur == RLIM_INFINITY ? INFINITY : (double)limit.rlim_cur);
}

static void collect(void *arg)
{
    struct cr_process_metrics *process = arg;
    collect_stat(process);
    collect_fds(process);
}

struct cr_process_metrics *cr_process_metrics_new(struct cr_metrics *metrics)
{
    struct cr_process_metrics *process = cr_new(struct cr_process_metrics);
    process->cpu = cr_metrics_counter(metrics, "process_cpu_seconds_total",
                                      "Total user and system CPU time spent in seconds.", NULL);
    process->resident =
        cr_metrics_gauge(metrics, "process_resident_memory_bytes", "Resident memory size in bytes.", NULL);
    process->virtual_memory =
        cr_metrics_gauge(metrics, "process_virtual_memory_bytes", "Virtual memory size in bytes.", NULL);
    process->open_fds = cr_metrics_gauge(metrics, "process_open_fds", "Number of open file descriptors.", NULL);
    process->max_fds = cr_metrics_gauge(metrics, "process_max_fds", "Maximum number of open file descriptors.", NULL);
    process->start_time = cr_metrics_gauge(metrics, "process_start_time_seconds",
                                           "Start time of the process since unix epoch in seconds.", NULL);
    cr_metrics_collect(metrics, collect, process);
    return process;
}

void cr_process_metrics_free(struct cr_process_metrics *process)
{
    free(process);
}

void cr_metrics_set_build_info(struct cr_metrics *metrics)
{
    struct cr_metric *build = cr_metrics_gauge(metrics, "certroll_build_info", "Which program this is; always 1.",
                                               CR_LABELS("version", "arch"));
    cr_metric_set(build, CR_LABELS(CERTROLL_VERSION, CERTROLL_ARCH), 1);
}
