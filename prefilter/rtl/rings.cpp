// The verilated model of the rings behind plain C functions: one clock a call.
#include MODEL_HEADER
#include <cstdint>

extern "C" {
struct RingInputs {
    uint64_t word_data;
    uint32_t write_data;
    uint16_t write_address, read_address;
    uint8_t reset, write, ask_ready, word_valid, put_ready;
    uint8_t reserved[3];
};
struct RingOutputs {
    uint64_t ask_address, put_address, put_data;
    uint32_t read_data;
    uint8_t ask_valid, put_valid;
    uint8_t reserved[2];
};

void *prefilter_rings_new() { return new MODEL; }
void prefilter_rings_free(void *model) { delete static_cast<MODEL *>(model); }

// The outputs are those that stand before the clock's edge, beside these inputs.
void prefilter_rings_clock(void *opaque, const RingInputs *in, RingOutputs *out) {
    MODEL *model = static_cast<MODEL *>(opaque);
    model->clk = 0;
    model->reset = in->reset;
    model->write = in->write;
    model->write_address = in->write_address;
    model->write_data = in->write_data;
    model->read_address = in->read_address;
    model->ask_ready = in->ask_ready;
    model->word_valid = in->word_valid;
    model->word_data = in->word_data;
    model->put_ready = in->put_ready;
    model->eval();
    out->ask_valid = model->ask_valid;
    out->ask_address = model->ask_address;
    out->put_valid = model->put_valid;
    out->put_address = model->put_address;
    out->put_data = model->put_data;
    out->read_data = model->read_data;
    model->clk = 1;
    model->eval();
}
}
