// The one copy of what hostrun_shared.h declares; included by the unit that defines HOSTRUN_MAIN.

#include <elf.h>

#include <fstream>

#include <sanitizer/common_interface_defs.h>

extern "C" const char __ehdr_start;

namespace hostrun {

static shared_section read_shared_map() {
    std::ifstream file("/proc/self/exe", std::ios::binary);
    std::vector<char> image((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    if (image.size() < sizeof(Elf64_Ehdr)) {
        fail("the program cannot read its own file /proc/self/exe");
    }
    const auto * header   = (const Elf64_Ehdr *) image.data();
    const auto * sections = (const Elf64_Shdr *) (image.data() + header->e_shoff);
    const char * names    = image.data() + sections[header->e_shstrndx].sh_offset;
    const uintptr_t bias  = header->e_type == ET_DYN ? (uintptr_t) &__ehdr_start : 0;

    shared_section map;
    for (int i = 0; i < header->e_shnum; ++i) {
        if (strcmp(names + sections[i].sh_name, ".hostrun.shared") == 0) {
            map.lo = bias + sections[i].sh_addr;
            map.hi = map.lo + sections[i].sh_size;
        }
    }
    for (int i = 0; i < header->e_shnum; ++i) {
        if (sections[i].sh_type != SHT_SYMTAB) {
            continue;
        }
        const auto * sym     = (const Elf64_Sym *) (image.data() + sections[i].sh_offset);
        const char * strings = image.data() + sections[sections[i].sh_link].sh_offset;
        for (size_t n = sections[i].sh_size / sizeof(Elf64_Sym); n > 0; --n, ++sym) {
            const uintptr_t at = bias + sym->st_value;
            if (ELF64_ST_TYPE(sym->st_info) == STT_OBJECT && at >= map.lo && at < map.hi) {
                // ASan's red zone counts as part of the symbol; the variable ends where it begins.
                void * zone = __asan_region_is_poisoned((void *) at, sym->st_size);
                map.variables.push_back({at, zone != nullptr ? (uintptr_t) zone - at : (size_t) sym->st_size, strings + sym->st_name});
            } else if (ELF64_ST_TYPE(sym->st_info) == STT_FUNC && sym->st_size > 0) {
                map.functions.push_back({at, (size_t) sym->st_size, strings + sym->st_name});
            }
        }
    }
    if (map.functions.empty()) {
        fail("the program has no symbol table: link it without -s");
    }
    if (map.hi > map.lo) {
        __asan_poison_memory_region((void *) map.lo, map.hi - map.lo);
    }
    return map;
}

const shared_section & shared_map() {
    static const shared_section map = read_shared_map();
    return map;
}

static std::vector<symbol> own; // shared variables of the running kernel

void shared_begin(const void * kernel, uint32_t pattern) {
    own.clear();
    std::string function;
    for (const symbol & f : shared_map().functions) {
        if (f.at == (uintptr_t) kernel) {
            function = f.name;
        }
    }
    int status = 0;
    char * plain   = abi::__cxa_demangle(function.c_str(), nullptr, nullptr, &status);
    running_kernel = status == 0 ? plain : function;
    free(plain);

    const std::string prefix = "_ZZ" + function.substr(function.rfind("_Z", 0) == 0 ? 2 : 0) + "E";
    shadow_lo = shadow_hi = 0;
    for (const symbol & v : shared_map().variables) {
        if (v.name.rfind(prefix, 0) == 0) {
            own.push_back(v);
            __asan_unpoison_memory_region((void *) v.at, v.size);
            shadow_lo = shadow_lo == 0 || v.at < shadow_lo ? v.at : shadow_lo;
            shadow_hi = v.at + v.size > shadow_hi ? v.at + v.size : shadow_hi;
        }
    }
    if (traced) {
        shadows = (shadow *) realloc((void *) shadows, (shadow_hi - shadow_lo + 1) * sizeof(shadow));
    }
    shared_refill(pattern);
}

HOSTRUN_RAW void shared_refill(uint32_t pattern) {
    for (const symbol & v : own) {
        auto * p = (volatile uint8_t *) v.at;
        for (size_t i = 0; i < v.size; ++i) {
            p[i] = (uint8_t) (pattern >> (8 * (i % 4)));
        }
    }
    if (traced) {
        for (size_t i = 0; i < shadow_hi - shadow_lo; ++i) {
            shadows[i] = shadow();
        }
    }
}

void shared_end() {
    for (const symbol & v : own) {
        __asan_poison_memory_region((void *) v.at, v.size);
    }
    own.clear();
    shadow_lo = shadow_hi = 0;
}

static HOSTRUN_RAW std::string shared_name(uintptr_t at) {
    for (const symbol & v : own) {
        if (at >= v.at && at < v.at + v.size) {
            return v.name.substr(v.name.find_first_not_of("0123456789", v.name.rfind('E') + 1)) + " + " + std::to_string(at - v.at) + " bytes";
        }
    }
    return "shared memory";
}

// " (file:line)", as far as the symbolizer knows it.
static HOSTRUN_RAW std::string place_of(const void * pc) {
    char text[512] = "";
    __sanitizer_symbolize_pc((void *) pc, "%s:%l", text, sizeof(text));
    const char * slash = strrchr(text, '/');
    return std::string(" (") + (slash != nullptr ? slash + 1 : text) + ")";
}

// Marks for shadow::reader when more than one thread has read since the last barrier.
static const int32_t several_in_warp = 1 << 20; // + warp index
static const int32_t several_warps   = 1 << 30;

// a and b were not ordered by a barrier: same block epoch, and not (same warp with a warp barrier between).
static HOSTRUN_RAW bool unordered(uint32_t epoch, uint32_t sync, int32_t who, uint32_t now, uint32_t now_sync, int32_t me) {
    if (epoch != now || who < 0 || who == me) {
        return false;
    }
    const int32_t warp = who == several_warps ? -1 : who >= several_in_warp ? who - several_in_warp : who / 32;
    return warp != me / 32 || sync == now_sync;
}

static HOSTRUN_RAW std::string threads(int32_t who) {
    return who < several_in_warp ? "thread " + std::to_string(who) : "other threads";
}

HOSTRUN_RAW void shared_access(uintptr_t at, size_t size, access how, const void * pc) {
    const bool write = how != access::read;
    const uint32_t epoch = block_epoch(), sync = warp_sync();
    const int32_t  me = (int32_t) thread_index();
    for (uintptr_t a = at; a < at + size && a < shadow_hi; ++a) {
        shadow & s = shadows[a - shadow_lo];
        if (how != access::write && s.writer < 0) {
            fail("uninitialised: thread %d reads %s%s before anything is written there in this block", me,
                 shared_name(a).c_str(), place_of(pc).c_str());
        }
        if (!(how == access::atomic && s.atomic) && unordered(s.write_epoch, s.write_sync, s.writer, epoch, sync, me)) {
            fail("race on %s: thread %d%s %s what %s%s wrote, with no barrier between them", shared_name(a).c_str(), me,
                 place_of(pc).c_str(), write ? "overwrites" : "reads", threads(s.writer).c_str(), place_of(s.write_pc).c_str());
        }
        if (write && unordered(s.read_epoch, s.read_sync, s.reader, epoch, sync, me)) {
            fail("race on %s: thread %d%s overwrites what %s%s read, with no barrier between them", shared_name(a).c_str(), me,
                 place_of(pc).c_str(), threads(s.reader).c_str(), place_of(s.read_pc).c_str());
        }
        if (!write) {
            s.read_pc = pc;
        }
        if (write) {
            const bool joined = how == access::atomic && s.atomic && s.write_epoch == epoch && s.writer != me;
            s.write_epoch = epoch, s.write_sync = sync, s.writer = joined ? several_warps : me, s.write_pc = pc;
            s.atomic = how == access::atomic;
        } else if (s.read_epoch != epoch || s.reader < 0) {
            s.read_epoch = epoch, s.read_sync = sync, s.reader = me;
        } else if (s.reader != me && s.reader != several_warps) {
            const int32_t warp = s.reader >= several_in_warp ? s.reader - several_in_warp : s.reader / 32;
            if (warp != me / 32) {
                s.reader = several_warps;
            } else if (s.read_sync != sync) {
                s.read_sync = sync, s.reader = me; // earlier reads are ordered before this warp's later writes
            } else {
                s.reader = several_in_warp + warp;
            }
        } else if (s.reader == me) {
            s.read_sync = sync;
        }
    }
    if (options.preempt != 0 && rng.below(options.preempt) == 0) {
        yield();
    }
}

} // namespace hostrun

// The compiler calls these before each load and store of a traced build.
#define HOSTRUN_HOOK(name, type, size, how)                                              \
    extern "C" HOSTRUN_RAW void name(type * p) {                                           \
        if ((uintptr_t) p >= hostrun::shadow_lo && (uintptr_t) p < hostrun::shadow_hi) {   \
            hostrun::shared_access((uintptr_t) p, size, hostrun::access::how, __builtin_return_address(0));                            \
        }                                                                                  \
    }
HOSTRUN_HOOK(__sanitizer_cov_load1, uint8_t, 1, read)
HOSTRUN_HOOK(__sanitizer_cov_load2, uint16_t, 2, read)
HOSTRUN_HOOK(__sanitizer_cov_load4, uint32_t, 4, read)
HOSTRUN_HOOK(__sanitizer_cov_load8, uint64_t, 8, read)
HOSTRUN_HOOK(__sanitizer_cov_load16, __uint128_t, 16, read)
HOSTRUN_HOOK(__sanitizer_cov_store1, uint8_t, 1, write)
HOSTRUN_HOOK(__sanitizer_cov_store2, uint16_t, 2, write)
HOSTRUN_HOOK(__sanitizer_cov_store4, uint32_t, 4, write)
HOSTRUN_HOOK(__sanitizer_cov_store8, uint64_t, 8, write)
HOSTRUN_HOOK(__sanitizer_cov_store16, __uint128_t, 16, write)

// Struct copies become calls into ASan; a traced program is linked with -Wl,--wrap=__asan_memcpy.
extern "C" void * __real___asan_memcpy(void * to, const void * from, size_t size) __attribute__((weak));
extern "C" HOSTRUN_RAW void * __wrap___asan_memcpy(void * to, const void * from, size_t size) {
    if ((uintptr_t) from >= hostrun::shadow_lo && (uintptr_t) from < hostrun::shadow_hi) {
        hostrun::shared_access((uintptr_t) from, size, hostrun::access::read, __builtin_return_address(0));
    }
    if ((uintptr_t) to >= hostrun::shadow_lo && (uintptr_t) to < hostrun::shadow_hi) {
        hostrun::shared_access((uintptr_t) to, size, hostrun::access::write, __builtin_return_address(0));
    }
    return __real___asan_memcpy(to, from, size);
}
