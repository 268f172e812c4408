"""Style sheet of the report: light and dark colors, print layout."""

from __future__ import annotations

# Class colors after Okabe and Ito, each as dark (or light) as it must be for 3:1 against its page.
LIGHT = {
    "page": "#ffffff", "panel": "#f6f7f9", "ink": "#1d2733", "quiet": "#56616e", "rule": "#d9dee4", "grid": "#e8ebef",
    "soft": "#7d8894", "accent": "#005f99", "good": "#0072b2", "bad": "#c44e00",
    "c0": "#0072b2", "c1": "#c44e00", "c2": "#00805e", "c3": "#a8507f", "c4": "#a37500", "c5": "#2089c4",
    "c6": "#5a5f66", "c7": "#6b3d00",
}  # fmt: skip
DARK = {
    "page": "#14181d", "panel": "#1c2229", "ink": "#e8ecf0", "quiet": "#a3aebb", "rule": "#36404b", "grid": "#2a323b",
    "soft": "#7f8b98", "accent": "#7cc4ee", "good": "#56b4e9", "bad": "#ff8a4c",
    "c0": "#56b4e9", "c1": "#ff8a4c", "c2": "#2cc295", "c3": "#e58fbb", "c4": "#e6b422", "c5": "#8fa8ff",
    "c6": "#b9c0c8", "c7": "#c9996b",
}  # fmt: skip
HEAT = 0.34  # how strong the fullest cell of a heat table is; text on it stays readable


def _variables(colors: dict[str, str]) -> str:
    return "".join(f"--{name}:{value};" for name, value in colors.items())


_PAGE = """
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;scroll-behavior:smooth}
body{margin:0;background:var(--page);color:var(--ink);
 font:1rem/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,"Noto Sans",sans-serif}
header,main,footer{max-width:1060px;margin:0 auto;padding:0 24px}
header{padding-top:48px}
h1{font-size:2rem;line-height:1.2;margin:0 0 4px;letter-spacing:-.015em;overflow-wrap:anywhere}
h2{font-size:1.3rem;line-height:1.3;margin:0 0 6px;letter-spacing:-.01em}
h3{font-size:1rem;margin:28px 0 8px}
p{margin:0 0 12px;max-width:72ch}
a{color:var(--accent)}
section{padding:40px 0 8px;border-top:1px solid var(--rule);margin-top:32px}
.lead{color:var(--quiet)}
.origin{color:var(--quiet);margin-bottom:24px;overflow-wrap:anywhere}
.verdict{font-size:1.22rem;line-height:1.5;max-width:62ch;margin:0 0 10px;overflow-wrap:anywhere}
.note,figcaption,small{color:var(--quiet);font-size:.875rem}
figcaption{margin-top:8px;max-width:66ch}
.absent{color:var(--quiet);font-style:italic}
nav{margin:28px 0 0;font-size:.9rem}
nav ul{list-style:none;display:flex;flex-wrap:wrap;gap:4px 18px;margin:0;padding:0}
nav a{text-decoration:none}
nav a:hover{text-decoration:underline}
.figures{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:12px;margin:26px 0 0;padding:0}
.figures div{background:var(--panel);border-radius:10px;padding:14px 16px}
.figures dt{color:var(--quiet);font-size:.85rem}
.figures dd{margin:0;font-size:1.5rem;line-height:1.3;font-variant-numeric:tabular-nums}
.figures dd small{display:block;font-size:.8rem;line-height:1.4}
.scroll{overflow-x:auto;margin:14px 0}
table{border-collapse:collapse;width:100%;font-size:.92rem;font-variant-numeric:tabular-nums}
caption{text-align:left;color:var(--quiet);font-size:.875rem;padding:0 0 8px}
th,td{padding:8px 12px;text-align:left;vertical-align:top;border-bottom:1px solid var(--rule)}
thead th{color:var(--quiet);font-weight:600;font-size:.82rem;vertical-align:bottom;white-space:nowrap}
tbody th{font-weight:600}
tfoot td,tfoot th{border-bottom:0;font-weight:400;color:var(--quiet)}
tbody:last-child tr:last-child>*{border-bottom:0}
.n{text-align:right;white-space:nowrap}
td .sub,th .sub{display:block;color:var(--quiet);font-weight:400;font-size:.92em;max-width:46ch}
tr.chosen>*{background:var(--panel)}
.tag{display:inline-block;border:1px solid var(--accent);color:var(--accent);border-radius:99px;padding:0 8px;
 font-size:.75rem;font-weight:600;line-height:1.5;margin-left:8px;white-space:nowrap}
.facts td:nth-child(2),.facts td:nth-child(5){min-width:150px}
.mid td,.mid tbody th{vertical-align:middle}
.board tbody th{min-width:190px}
.heat,.tight{width:auto;min-width:50%}
.heat td,.heat tbody th{vertical-align:middle}
.heat th{border:0}
.heat thead th:first-child{text-align:left}
.heat td{text-align:right;min-width:76px;border:1px solid var(--page)}
.heat thead th{text-align:right;white-space:normal;max-width:150px;overflow-wrap:anywhere}
.heat.many td,.heat.many th{padding:5px 6px}
.heat.many td{min-width:0;font-size:.84rem}
.heat thead th:first-child,.heat thead th:last-child{white-space:nowrap}
.heat .none{color:var(--quiet)}
.heat td.right{background:color-mix(in srgb,var(--good) var(--a),transparent)}
.heat td.wrong{background:color-mix(in srgb,var(--bad) var(--a),transparent)}
.heat td.handed{background:color-mix(in srgb,var(--soft) var(--a),transparent)}
.heat td b{display:block;font-size:1.1em;font-weight:600}
.heat td small{display:block;line-height:1.35;font-size:.95em;color:var(--ink)}
.name{display:inline-flex;align-items:center;gap:6px;overflow-wrap:anywhere}
.swatch{width:13px;height:13px;flex:none;overflow:visible}
.swatch.long{width:28px}
.legend{list-style:none;display:flex;flex-wrap:wrap;gap:4px 18px;margin:8px 0;padding:0;font-size:.88rem}
.legend li{display:inline-flex;align-items:center;gap:7px}
.pair{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,420px),1fr));gap:28px 32px;margin:18px 0}
figure{margin:0;min-width:0}
figure.wide{max-width:820px;margin:18px 0}
figure.narrow{max-width:520px;margin:18px 0}
figure h3{margin:0 0 8px}
.warnings{list-style:none;margin:14px 0;padding:0}
.warnings li{border-left:4px solid var(--bad);background:var(--panel);padding:10px 16px;margin:0 0 8px;
 border-radius:0 8px 8px 0;max-width:80ch;overflow-wrap:anywhere}
pre{background:var(--panel);border-radius:10px;padding:14px 18px;overflow-x:auto;white-space:pre-wrap;
 overflow-wrap:anywhere;font:.875rem/1.6 ui-monospace,SFMono-Regular,Menlo,Consolas,"Liberation Mono",monospace}
code{font:.92em ui-monospace,SFMono-Regular,Menlo,Consolas,"Liberation Mono",monospace}
.cells{color:var(--quiet);font-size:.92em;overflow-wrap:anywhere}
.cells b{color:var(--ink);font-weight:600}
footer{color:var(--quiet);font-size:.85rem;padding-top:40px;padding-bottom:56px}
"""

_DRAWING = """
svg{display:block}
.chart{width:100%;height:auto;overflow:visible;font-size:12.5px;fill:var(--ink)}
.chart text{fill:var(--quiet);font-variant-numeric:tabular-nums}
.chart .axis{fill:var(--ink)}
.chart .callout{fill:var(--ink);font-weight:600;paint-order:stroke;stroke:var(--page);stroke-width:4px;
 stroke-linejoin:round}
.map{font-size:11px}
.cell{width:170px;height:26px;font-size:11.5px}
tfoot .cell{height:22px}
.cell text{fill:var(--quiet)}
.spark{width:150px;height:auto}
.grid{stroke:var(--grid);stroke-width:1}
.zero,.tick{stroke:var(--soft);stroke-width:1}
.ideal{stroke:var(--soft);stroke-width:1.2;stroke-dasharray:4 4}
.curve{stroke:var(--c);stroke-width:2.2;stroke-linejoin:round;fill:none}
.whisker{stroke:var(--ink);stroke-width:1.6}
.dot{fill:var(--good);stroke:var(--page);stroke-width:1.2}
.here{fill:var(--bad);stroke:var(--page);stroke-width:1.5}
.beyond{fill:none;stroke:var(--bad);stroke-width:2}
.band{fill:var(--good);opacity:.14}
.points circle{fill:var(--good);fill-opacity:.35}
.wide-band{fill:var(--good);opacity:.13}
.narrow-band{fill:var(--good);opacity:.26}
.trend{stroke:var(--good);stroke-width:2.2;fill:none;stroke-linejoin:round}
.limit{stroke:var(--bad);stroke-width:1.4;stroke-dasharray:5 4;fill:none}
.rug{stroke:var(--ink);stroke-width:1;opacity:.35}
.bars rect{fill:var(--good);opacity:.75}
.bars text{fill:var(--ink)}
.ridge{fill:var(--c);fill-opacity:.5;stroke:var(--c);stroke-width:1}
.symbol{fill:var(--c);fill-opacity:.55;stroke:var(--c);stroke-width:1.1}
.ring{fill:none;stroke:var(--ink);stroke-width:1.2}
.ring.refused{stroke:var(--quiet);stroke-dasharray:2.5 2;stroke-width:1}
.regions{opacity:.2;shape-rendering:crispEdges}
.border{fill:none;stroke:var(--ink);stroke-width:.8;opacity:.35}
.hatch{stroke:var(--ink);stroke-width:1.4;fill:none}
.map .grid{stroke:var(--rule);stroke-opacity:.55}
"""

_PHONE = """
@media (max-width:640px){
header,main,footer{padding-left:16px;padding-right:16px}
header{padding-top:28px}
h1{font-size:1.6rem}
.verdict{font-size:1.08rem}
.chart{font-size:14.5px}
.map{font-size:17px}
th,td{padding:7px 9px}
}
"""

_PAPER = """
@page{margin:16mm 14mm}
@media print{
html{font-size:9.8pt}
body{-webkit-print-color-adjust:exact;print-color-adjust:exact}
header,main,footer{max-width:none;padding-left:0;padding-right:0}
header{padding-top:0}
nav{display:none}
section{padding-top:18px;margin-top:18px}
h2,h3,caption,.lead{break-after:avoid}
figure,tr,.figures,.warnings li,pre,.heat{break-inside:avoid}
.scroll{overflow:visible}
thead{display:table-header-group}
.pair{grid-template-columns:1fr 1fr;gap:14px}
figure.wide{max-width:150mm}
.figures{grid-template-columns:repeat(5,1fr);gap:8px}
.figures div{padding:8px 10px}
.figures dd{font-size:1.25rem}
table{font-size:.84rem}
th,td{padding:4px 6px}
thead th{white-space:normal;font-size:.8rem}
.facts td:nth-child(2),.facts td:nth-child(5){min-width:0}
.board tbody th{min-width:44mm}
.cell{width:30mm}
.spark{width:32mm}
.heat td{min-width:0}
.heat.many td,.heat.many th{font-size:6.6pt;padding:2px 3px}
a{color:inherit;text-decoration:none}
}
"""


def style_sheet() -> str:
    """The whole style sheet; dark colors are for screens alone, so that paper stays white."""
    light = f":root{{color-scheme:light dark;{_variables(LIGHT)}}}"
    dark = f"@media screen and (prefers-color-scheme:dark){{:root{{{_variables(DARK)}}}}}"
    return "".join([light, dark, _PAGE, _DRAWING, _PHONE, _PAPER])
