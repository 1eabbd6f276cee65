// Beats of 64 bytes into beats of eight: what is not kept of a beat is left out, so 48 bytes take six clocks.
module pf_narrow (
    input  logic         clk,
    input  logic         reset,
    input  logic         s_valid,
    output logic         s_ready,
    input  logic [511:0] s_data,
    input  logic [63:0]  s_keep,
    input  logic         s_last,
    input  logic [63:0]  s_now,
    input  logic         s_post_only,
    output logic         m_valid,
    input  logic         m_ready,
    output logic [63:0]  m_data,
    output logic [7:0]   m_keep,
    output logic         m_last,
    output logic [63:0]  m_now,
    output logic         m_post_only
);
    logic [511:0] data;
    logic [63:0] keep;
    logic last, ends;
    // The last eight bytes of the beat are on the way.
    assign ends = keep[15:8] == 0;
    assign m_data = data[63:0];
    assign m_keep = keep[7:0];
    assign m_last = last && ends;
    assign s_ready = !m_valid || (m_ready && ends);
    always_ff @(posedge clk) begin
        if (m_valid && m_ready) begin
            data <= {64'd0, data[511:64]};
            keep <= {8'd0, keep[63:8]};
            if (ends) m_valid <= 0;
        end
        if (s_valid && s_ready) begin
            data <= s_data;
            keep <= s_keep;
            last <= s_last;
            m_now <= s_now;
            m_post_only <= s_post_only;
            m_valid <= 1;
        end
        if (reset) m_valid <= 0;
    end
endmodule
