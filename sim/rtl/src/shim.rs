//! The C interface of a model, which the compiler adds to Verilator's code.

use crate::{DesignSpec, Error, Result};
use std::fmt::Write as _;

/// Serialisation of a model (Verilator's `--savable`) to and from memory. The reader's end lies
/// behind the data by Verilator's look-ahead, so that it never requests more.
const SAVE: &str = r#"
#include <cstring>
#include <vector>
#include "verilated_save.h"
struct mem_save final : public VerilatedSerialize {
  std::vector<uint8_t> out;
  mem_save() { m_isOpen = true; }
  void flush() override { out.insert(out.end(), m_bufp, m_cp); m_cp = m_bufp; }
};
struct mem_restore final : public VerilatedDeserialize {
  std::vector<uint8_t> in;
  mem_restore(const uint8_t* p, uint64_t n) : in(n + bufferInsertSize(), 0) {
    std::memcpy(in.data(), p, n);
    m_isOpen = true;
    m_cp = in.data();
    m_endp = in.data() + in.size();
  }
  bool whole(uint64_t n) const { return m_cp == in.data() + n; }
  void fill() override {}
};
API uint64_t shef_save(handle* m, uint8_t* to, uint64_t room) {
  mem_save s;
  s << m->model;
  s.flush();
  if (s.out.size() <= room) std::memcpy(to, s.out.data(), s.out.size());
  return s.out.size();
}
API uint32_t shef_restore(handle* m, const uint8_t* from, uint64_t n) {
  mem_restore r(from, n);
  r >> m->model;
  return r.whole(n) ? 1 : 0;
}
"#;

/// The same with coverage, which Verilator's serialisation does not support: the bytes of the
/// module instances, which lie before the counters, so that the counters continue. The bytes
/// contain pointers into their instance and are restored only into that instance.
const SAVE_BESIDE_COVERAGE: &str = r#"
#include <cstring>
#include "Vtop__Syms.h"
static uint8_t* state_of(handle* m) { return (uint8_t*)&m->model.rootp->vlSymsp->TOP; }
static uint64_t size_of(handle* m) { return (uint64_t)((uint8_t*)m->model.rootp->vlSymsp->__Vcoverage - state_of(m)); }
API uint64_t shef_save(handle* m, uint8_t* to, uint64_t room) {
  const uint64_t n = sizeof(m->number) + size_of(m);
  if (n <= room) {
    std::memcpy(to, &m->number, sizeof(m->number));
    std::memcpy(to + sizeof(m->number), state_of(m), size_of(m));
  }
  return n;
}
API uint32_t shef_restore(handle* m, const uint8_t* from, uint64_t n) {
  if (n != sizeof(m->number) + size_of(m) || std::memcmp(from, &m->number, sizeof(m->number)) != 0) return 0;
  std::memcpy(state_of(m), from + sizeof(m->number), size_of(m));
  return 1;
}
"#;

/// The `extern "C"` side: create, evaluate, free, and the address of each port.
pub(crate) fn shim_source(
    top: &str,
    header: &str,
    digest: &str,
    spec: &DesignSpec,
) -> Result<String> {
    let mut ports = String::new();
    let mut count = 0u32;
    let mut add = |name: &str, dir: u32, (hi, lo): (i64, i64), at: &str| {
        let bits = (hi - lo).abs() + 1;
        let _ = writeln!(
            ports,
            "  if (i == {count}) return shef_port{{\"{name}\", {dir}, {bits}, (void*)&m->model.{at}}};"
        );
        count += 1;
    };
    for line in header.lines().map(str::trim) {
        let bad = || Error::PortForm { top: top.to_owned(), port: line.to_owned() };
        // `VlUnpacked<type/*hi:lo*/, n> &bus_signal;`: element k is the port `busk_signal`; the
        // header does not give its direction
        if let Some((array, name)) =
            line.strip_prefix("VlUnpacked<").and_then(|l| l.strip_suffix(';')?.split_once("> &"))
        {
            let (_, range) = array.split_once("/*").ok_or_else(bad)?;
            let (range, n) = range.split_once("*/, ").ok_or_else(bad)?;
            let (hi, lo) = range.split_once(':').ok_or_else(bad)?;
            let number = |s: &str| s.parse::<i64>().map_err(|_| bad());
            let (bus, signal) = name.split_once('_').ok_or_else(bad)?;
            for k in 0..number(n)? {
                add(
                    &format!("{bus}{k}_{signal}"),
                    2,
                    (number(hi)?, number(lo)?),
                    &format!("{name}[{k}]"),
                );
            }
            continue;
        }
        let Some((mac, rest)) = line.split_once('(') else { continue };
        let dir = if mac.starts_with("VL_INOUT") {
            2
        } else if mac.starts_with("VL_IN") {
            0
        } else if mac.starts_with("VL_OUT") {
            1
        } else {
            continue;
        };
        let body = rest.split(')').next().ok_or_else(bad)?;
        let mut f = body.split(',');
        let name = f.next().and_then(|n| n.trim().strip_prefix('&')).ok_or_else(bad)?;
        let mut num = || f.next().and_then(|n| n.trim().parse::<i64>().ok()).ok_or_else(bad);
        let (hi, lo) = (num()?, num()?);
        if !rest.trim_end().ends_with(");") || name.contains('[') {
            return Err(bad());
        }
        add(name, dir, (hi, lo), name);
    }
    let trace_inc = if spec.trace { "#include \"verilated_fst_c.h\"\n" } else { "" };
    let trace = if spec.trace {
        r#"
API int32_t shef_trace_open(handle* m, const char* path, const char* scope) {
  if (!m->fst) { m->fst = new VerilatedFstC; m->model.trace(m->fst, 99); }
  m->fst->dumpvars(0, "");
  if (*scope) m->fst->dumpvars(99, scope);
  m->fst->open(path);
  return m->fst->isOpen() ? 1 : 0;
}
API void shef_trace_dump(handle* m, uint64_t t) { m->fst->dump(t); }
API void shef_trace_close(handle* m) { if (m->fst) m->fst->close(); }
"#
    } else {
        ""
    };
    let trace_on = if spec.trace { "ctx.traceEverOn(true);" } else { "" };
    let trace_member = if spec.trace {
        "VerilatedFstC* fst = nullptr; ~handle() { model.final(); delete fst; }"
    } else {
        "~handle() { model.final(); }"
    };
    let cov = if spec.coverage {
        "#include \"verilated_cov.h\"\nAPI void shef_coverage(handle* m, const char* path) { m->ctx.coveragep()->forcePerInstance(true); m->ctx.coveragep()->write(path); }\n"
    } else {
        ""
    };
    let save = match (spec.savable, spec.coverage) {
        (false, _) => "",
        (true, false) => SAVE,
        (true, true) => SAVE_BESIDE_COVERAGE,
    };
    let random = u32::from(spec.random_contents);
    Ok(format!(
        r#"// Generated: C interface of {top}.
#include <atomic>
#include <cstdint>
#include "verilated.h"
{trace_inc}#include "Vtop.h"
#define API extern "C" __attribute__((visibility("default")))
static std::atomic<uint64_t> handles{{0}};
struct handle {{
  const uint64_t number = ++handles;
  VerilatedContext ctx;
  // Older runtimes take initial values from the context of the thread.
  struct on {{ on(VerilatedContext& ctx, uint32_t seed) {{
    Verilated::threadContextp(&ctx);
    ctx.randReset(seed ? 2 : 0);
    ctx.randSeed(seed ? (int)seed : 1);
    {trace_on}
  }} }} on_;
  Vtop model;
  {trace_member}
  handle(uint32_t seed) : ctx(), on_(ctx, seed), model(&ctx, "top") {{}}
}};
struct shef_port {{ const char* name; uint32_t dir; uint32_t bits; void* at; }};
extern "C" {{
__attribute__((visibility("default"))) extern const char shef_design_digest[65] = "{digest}";
__attribute__((visibility("default"))) extern const uint32_t shef_port_count = {count};
__attribute__((visibility("default"))) extern const uint32_t shef_random_contents = {random};
}}
API handle* shef_new(uint32_t seed) {{ return new handle(seed); }}
// Older runtimes look up the context of the thread while they take a model down: it must be this
// one's.
API void shef_free(handle* m) {{ Verilated::threadContextp(&m->ctx); delete m; }}
API void shef_eval(handle* m) {{ m->model.eval(); }}
API uint32_t shef_finished(handle* m) {{ return m->ctx.gotFinish(); }}
API void shef_run(handle* m, uint8_t* clk, uint64_t n) {{
  for (uint64_t i = 0; i < n; ++i) {{ *clk = 0; m->model.eval(); *clk = 1; m->model.eval(); }}
}}
API shef_port shef_port_at(handle* m, uint32_t i) {{
{ports}  return shef_port{{nullptr, 0, 0, nullptr}};
}}
{trace}{cov}{save}"#
    ))
}
