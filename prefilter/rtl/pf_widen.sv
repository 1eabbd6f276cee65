// Beats of eight bytes into beats of 64: a beat leaves when it is full or the frame ends.
module pf_widen (
    input  logic         clk,
    input  logic         reset,
    input  logic         s_valid,
    output logic         s_ready,
    input  logic [63:0]  s_data,
    input  logic [7:0]   s_keep,
    input  logic         s_last,
    output logic         m_valid,
    input  logic         m_ready,
    output logic [511:0] m_data,
    output logic [63:0]  m_keep,
    output logic         m_last
);
    logic [2:0] at;
    assign s_ready = !m_valid || m_ready;
    always_ff @(posedge clk) begin
        if (m_valid && m_ready) m_valid <= 0;
        if (s_valid && s_ready) begin
            if (at == 0) m_keep <= 0;
            m_data[at * 64 +: 64] <= s_data;
            m_keep[at * 8 +: 8] <= s_keep;
            m_last <= s_last;
            m_valid <= s_last || at == 7;
            at <= s_last ? 3'd0 : at + 3'd1;
        end
        if (reset) begin
            m_valid <= 0;
            at <= 0;
        end
    end
endmodule
