package canvas

// Style is the style sheet of the picture. Isolated and unknown things differ in their
// outlines and not only in their colours.
const Style = `text { font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: #1f2328 }
.heading { font-weight: 600 }
.page { fill: #ffffff }
.node { fill: #f6f8fa; stroke: #8c959f }
.node-memory { fill: #eefbf1; stroke: #4ac26b }
.cache { fill: #ffffff; stroke: #afb8c1 }
.elsewhere { fill: none; stroke: #8c959f; stroke-dasharray: 5 4 }
.core { fill: #ddf4ff; stroke: #80ccff }
.core-isolated { fill: #fff8c5; stroke: #bf8700; stroke-dasharray: 3 2 }
text.cpu { fill: #0a3069 }
text.isolated { fill: #7d4e00 }
text.memory { fill: #116329 }
text.device { fill: #8250df }
text.muted { fill: #59636e }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 }
.page { fill: #0d1117 }
.node { fill: #161b22; stroke: #656c76 }
.node-memory { fill: #0f2a18; stroke: #2ea043 }
.cache { fill: #0d1117; stroke: #3d444d }
.elsewhere { stroke: #656c76 }
.core { fill: #0c2d4a; stroke: #1f6feb }
.core-isolated { fill: #3a2a05; stroke: #d29922 }
text.cpu { fill: #a5d6ff }
text.isolated { fill: #f2cc60 }
text.memory { fill: #7ee787 }
text.device { fill: #d2a8ff }
text.muted { fill: #9198a1 }
}
`
