package eval

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"strconv"

	"github.com/go-analyze/charts"

	"precis/pipeline"
)

// The dimensions of the picture, in pixels.
const (
	pictureWidth = 1000
	panelHeight  = 260
	legendHeight = 70
	panelColumns = 2
)

// SVG returns the picture of the report: a panel for each kind of fact, a line for each method, with the share that is
// left after each compaction. The same report gives the same bytes.
func (r *Report) SVG() ([]byte, error) {
	kinds := r.drawable()
	rows := (len(kinds) + panelColumns - 1) / panelColumns
	p := charts.NewPainter(charts.PainterOptions{
		OutputFormat: charts.ChartOutputSVG, Width: pictureWidth, Height: legendHeight + rows*panelHeight,
	})
	p.FilledRect(0, 0, pictureWidth, legendHeight+rows*panelHeight, charts.ColorWhite, charts.ColorWhite, 0)
	for i, kind := range kinds {
		left, top := i%panelColumns*(pictureWidth/panelColumns), legendHeight+i/panelColumns*panelHeight
		panel := p.Child(charts.PainterBoxOption(charts.NewBox(left, top, left+pictureWidth/panelColumns,
			top+panelHeight)))
		if err := panel.LineChart(r.panel(kind)); err != nil {
			return nil, fmt.Errorf("draw %s: %w", kind, err)
		}
	}
	r.legend(p)
	svg, err := p.Bytes()
	if err != nil {
		return nil, fmt.Errorf("write the picture: %w", err)
	}
	return wellFormed(svg)
}

// drawable returns the kinds that were followed through more than one compaction.
func (r *Report) drawable() []pipeline.MentionKind {
	var kinds []pipeline.MentionKind
	for _, kind := range pipeline.MentionKinds {
		for _, row := range r.Rows {
			if s := row.Kinds[kind]; len(s) > 1 && s[0].Said > 0 && s[len(s)-1].Said > 0 {
				kinds = append(kinds, kind)
				break
			}
		}
	}
	return kinds
}

func (r *Report) panel(kind pipeline.MentionKind) charts.LineChartOption {
	values := make([][]float64, len(r.Rows))
	said := 0
	for i, row := range r.Rows {
		s := row.Kinds[kind]
		for g := range r.Generations {
			share, ok := s.Share(g + 1)
			if !ok {
				values[i] = append(values[i], charts.GetNullValue())
				continue
			}
			said = max(said, s[g].Said)
			values[i] = append(values[i], share*100)
		}
	}
	opt := charts.NewLineChartOptionWithData(values)
	opt.Title = charts.TitleOption{
		Text:      fmt.Sprintf("%s (%d)", headings[kind], said),
		FontStyle: charts.FontStyle{FontSize: 12},
	}
	opt.Legend = charts.LegendOption{Show: charts.Ptr(false)}
	opt.XAxis.Labels = nil
	for g := range r.Generations {
		opt.XAxis.Labels = append(opt.XAxis.Labels, strconv.Itoa(g+1))
	}
	opt.YAxis = []charts.YAxisOption{{Min: charts.Ptr(0.0), Max: charts.Ptr(100.0), LabelCount: 6}}
	opt.ValueFormatter = func(v float64) string { return strconv.Itoa(int(v)) + " %" }
	opt.LineStrokeWidth = 2
	opt.Padding = charts.NewBoxEqual(12)
	return opt
}

// legend draws the names of the lines above all panels.
func (r *Report) legend(p *charts.Painter) {
	theme := charts.GetDefaultTheme()
	x, y := 20, 24
	p.Text("Share of facts still in the context, by the number of compactions since", x, y, 0,
		charts.FontStyle{FontSize: 13, FontColor: charts.ColorBlack})
	for i, row := range r.Rows {
		p.FilledRect(x, y+16, x+18, y+20, theme.GetSeriesColor(i), theme.GetSeriesColor(i), 0)
		p.Text(row.Name(), x+24, y+23, 0, charts.FontStyle{FontSize: 10, FontColor: charts.ColorBlack})
		x += pictureWidth/max(len(r.Rows), 1) - 4
	}
}

// wellFormed returns svg, or an error if it is not well-formed XML, as with a forbidden character in a name.
func wellFormed(svg []byte) ([]byte, error) {
	for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
		switch _, err := d.Token(); {
		case err == io.EOF:
			return svg, nil
		case err != nil:
			return nil, fmt.Errorf("the picture is not well-formed XML: %w", err)
		}
	}
}
