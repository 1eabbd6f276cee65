// The register port: control, heartbeat, generation, staging of limits, counters. docs/prefilter.md has the map.
//
// After a reset the tables are cleared, one entry a cycle; until that is done no frame is taken.
module pf_registers #(
    parameter SYMBOLS_LOG2 = 7,
    parameter SESSIONS_LOG2 = 7,
    parameter STREAM_LOG2 = 6,
    parameter RINGS = 0
) (
    input  logic        clk,
    input  logic        reset,
    // The host. A write is taken at once; what is read appears with the clock after the next.
    input  logic        write,
    input  logic [11:0] write_address,
    input  logic [31:0] write_data,
    input  logic [11:0] read_address,
    output logic [31:0] read_data,
    // To the judge.
    output logic        ready,
    output logic        open,
    output logic        kill,
    output logic        bank,
    output logic [31:0] generation,
    // No frame is under way with this clock, so the banks may be swapped.
    input  logic        may_swap,
    output logic        symbol_write,
    output logic [SYMBOLS_LOG2:0]  symbol_address,
    output logic [167:0] symbol_data,
    output logic        session_write,
    output logic [SESSIONS_LOG2:0] session_address,
    output logic [79:0] session_data,
    output logic        touch_write,
    output logic [SYMBOLS_LOG2:0]  touch_address,
    output logic [63:0] touch_data,
    // Clears the time that is due of every session.
    output logic        clearing,
    output logic [SESSIONS_LOG2-1:0] clear_address,
    // One verdict.
    input  logic        judged,
    input  logic [8:0]  reasons
);
    localparam LONGEST = SYMBOLS_LOG2 > SESSIONS_LOG2 ? SYMBOLS_LOG2 : SESSIONS_LOG2;
    localparam [31:0] CAPS = (STREAM_LOG2 << 24) | (RINGS << 16) | (SESSIONS_LOG2 << 8) | SYMBOLS_LOG2;

    logic enable, lost, swapping;
    logic [31:0] next_generation;
    logic [31:0] heartbeat;
    logic [LONGEST+1:0] clear;

    assign ready = clear[LONGEST+1];
    assign open = enable;
    assign clearing = !ready;
    assign clear_address = clear[SESSIONS_LOG2-1:0];

    // Staged limits, low word first.
    logic [31:0] max_quantity, lowest_low, lowest_high, highest_low, highest_high;
    logic [31:0] interval, ahead_low, touch_low, touch_high;
    logic [15:0] ahead_high;

    logic do_symbol, do_session, do_touch;
    logic [31:0] word;
    // The host's write, a clock later.
    logic written;
    logic [11:0] address;
    logic [31:0] value;

    always_ff @(posedge clk) begin
        do_symbol <= 0;
        do_session <= 0;
        do_touch <= 0;
        written <= write && ready;
        address <= write_address;
        value <= write_data;
        word <= value;
        if (!ready) clear <= clear + 1;
        // Closes by itself when nobody says that the host is alive. Enabling needs a heartbeat first.
        if (heartbeat != 0) heartbeat <= heartbeat - 1;
        if (heartbeat == 1) lost <= lost || enable;
        if (heartbeat <= 1) enable <= 0;
        if (swapping && may_swap) begin
            swapping <= 0;
            bank <= !bank;
            generation <= next_generation;
        end
        if (written) case (address)
            12'h00C: begin
                enable <= value[0] && heartbeat > 1;
                kill <= value[1];
                lost <= 0;
            end
            12'h014: begin
                swapping <= 1;
                next_generation <= value;
            end
            12'h018: begin
                heartbeat <= value;
                if (heartbeat > 1) enable <= enable && value != 0;
            end
            12'h024: max_quantity <= value;
            12'h028: lowest_low <= value;
            12'h02C: lowest_high <= value;
            12'h030: highest_low <= value;
            12'h034: highest_high <= value;
            12'h03C: do_symbol <= 1;
            12'h044: interval <= value;
            12'h048: ahead_low <= value;
            12'h04C: ahead_high <= value[15:0];
            12'h050: do_session <= 1;
            12'h054: touch_low <= value;
            12'h058: touch_high <= value;
            12'h05C: do_touch <= 1;
            default: ;
        endcase
        if (reset) begin
            clear <= 0;
            enable <= 0;
            kill <= 0;
            lost <= 0;
            heartbeat <= 0;
            bank <= 0;
            generation <= 0;
            swapping <= 0;
            do_symbol <= 0;
            do_session <= 0;
            do_touch <= 0;
            written <= 0;
        end
    end

    // Both banks and both sides are cleared: no limits, no bid (lowest price), no ask (highest).
    assign symbol_write = !ready || (do_symbol && word[23:0] >> SYMBOLS_LOG2 == 0);
    assign symbol_address = ready ? {!bank, word[SYMBOLS_LOG2-1:0]} : clear[SYMBOLS_LOG2:0];
    assign symbol_data = ready ? {word[31:24], max_quantity, highest_high, highest_low, lowest_high, lowest_low} : 168'd0;
    assign session_write = !ready || (do_session && word[15:0] >> SESSIONS_LOG2 == 0);
    assign session_address = ready ? {!bank, word[SESSIONS_LOG2-1:0]} : clear[SESSIONS_LOG2:0];
    assign session_data = ready ? {interval, ahead_high, ahead_low} : 80'd0;
    assign touch_write = !ready || (do_touch && word[23:0] >> SYMBOLS_LOG2 == 0);
    assign touch_address = ready ? {word[24], word[SYMBOLS_LOG2-1:0]} : clear[SYMBOLS_LOG2:0];
    assign touch_data = ready ? {touch_high, touch_low}
        : clear[SYMBOLS_LOG2] ? 64'h7FFF_FFFF_FFFF_FFFF : 64'h8000_0000_0000_0000;

    logic [31:0] received, passed, refused;
    logic [31:0] counts [0:8];
    integer bit_;
    always_ff @(posedge clk) begin
        if (judged) begin
            received <= received + 1;
            if (reasons == 0) passed <= passed + 1;
            else refused <= refused + 1;
        end
        for (bit_ = 0; bit_ < 9; bit_ = bit_ + 1) if (judged && reasons[bit_]) counts[bit_] <= counts[bit_] + 1;
        if (reset) begin
            received <= 0;
            passed <= 0;
            refused <= 0;
            for (bit_ = 0; bit_ < 9; bit_ = bit_ + 1) counts[bit_] <= 0;
        end
    end

    // Two halves side by side, then the one of them.
    logic [31:0] state, count;
    logic wants_count;
    always_ff @(posedge clk) begin
        wants_count <= read_address >= 12'h0A0 && read_address <= 12'h0C0;
        count <= counts[read_address[5:2] - 4'h8];
        case (read_address)
            12'h000: state <= 32'h544C_4650;
            12'h004: state <= 1;
            12'h008: state <= CAPS;
            12'h00C: state <= {30'd0, kill, enable};
            12'h010: state <= {28'd0, swapping, lost, enable, ready};
            12'h014: state <= generation;
            12'h080: state <= received;
            12'h084: state <= passed;
            12'h088: state <= refused;
            default: state <= 0;
        endcase
        read_data <= wants_count ? count : state;
    end
endmodule
