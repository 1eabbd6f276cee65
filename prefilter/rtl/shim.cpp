// The verilated model behind plain C functions: one clock a call. Compiled once for each width, with WIDTH, MODEL and the
// model's header given.
#include MODEL_HEADER
#include <cstdint>
#include <cstring>

#define JOIN2(a, b) a##b
#define JOIN(a, b) JOIN2(a, b)
#define NAME(function) JOIN(JOIN(prefilter, WIDTH), _##function)

double sc_time_stamp();

extern "C" {
struct Inputs {
    uint64_t now, s_keep;
    uint32_t s_data[16];
    uint32_t write_data;
    uint16_t write_address, read_address;
    uint8_t reset, write, s_valid, s_last, s_user, m_ready, r_ready, v_ready;
};
struct Outputs {
    uint64_t m_keep, r_keep;
    uint32_t m_data[16], r_data[16];
    uint32_t v_data[4];
    uint32_t read_data;
    uint8_t s_ready, m_valid, m_last, r_valid, r_last, v_valid;
    uint8_t reserved[2];
};

void *NAME(new)() { return new MODEL; }
void NAME(free)(void *model) { delete static_cast<MODEL *>(model); }

// The outputs are those that stand before the clock's edge, beside these inputs.
void NAME(clock)(void *opaque, const Inputs *in, Outputs *out) {
    MODEL *model = static_cast<MODEL *>(opaque);
    model->clk = 0;
    model->reset = in->reset;
    model->write = in->write;
    model->write_address = in->write_address;
    model->write_data = in->write_data;
    model->read_address = in->read_address;
    model->now = in->now;
    model->s_axis_tvalid = in->s_valid;
    model->s_axis_tlast = in->s_last;
    model->s_axis_tuser = in->s_user;
    model->m_axis_tready = in->m_ready;
    model->r_axis_tready = in->r_ready;
    model->v_axis_tready = in->v_ready;
    std::memcpy(&model->s_axis_tdata, in->s_data, WIDTH / 8);
    std::memcpy(&model->s_axis_tkeep, &in->s_keep, WIDTH / 64);
    model->eval();
    std::memset(out, 0, sizeof *out);
    std::memcpy(out->m_data, &model->m_axis_tdata, WIDTH / 8);
    std::memcpy(out->r_data, &model->r_axis_tdata, WIDTH / 8);
    std::memcpy(&out->m_keep, &model->m_axis_tkeep, WIDTH / 64);
    std::memcpy(&out->r_keep, &model->r_axis_tkeep, WIDTH / 64);
    std::memcpy(out->v_data, &model->v_axis_tdata, 16);
    out->read_data = model->read_data;
    out->s_ready = model->s_axis_tready;
    out->m_valid = model->m_axis_tvalid;
    out->m_last = model->m_axis_tlast;
    out->r_valid = model->r_axis_tvalid;
    out->r_last = model->r_axis_tlast;
    out->v_valid = model->v_axis_tvalid;
    model->clk = 1;
    model->eval();
}
}
