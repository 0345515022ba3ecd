"use strict";
// The picture as a file: Picture draws on an SvgContext as on a canvas's context, of which this is
// as much as it uses. Colours are classes, so that the file is dark where its reader is.

const ruler = document.createElement("canvas").getContext("2d");
const escaped = (text) => text.replace(/[&<>"]/g, (c) => "&#" + c.charCodeAt(0) + ";");
// The name that files of this kind bear, as the browser knows it.
const kNamespace = (() => {
  const template = document.createElement("template");
  template.innerHTML = "<svg></svg>";
  return template.content.firstChild.namespaceURI;
})();
const rounded = (number) => Number(number.toFixed(1));

class SvgContext {
  constructor(height) {
    this.height = height;
    this.parts = [];
    this.kept = [];
    this.path = "";
    this.halo = null;  // the text that has been stroked, and is to be filled
    Object.assign(this, {fillStyle: "ink", strokeStyle: "ink", lineWidth: 1, font: kFont,
                         textAlign: "left", textBaseline: "alphabetic", globalAlpha: 1, dash: [], x: 0, y: 0});
  }

  save() {
    const {fillStyle, strokeStyle, lineWidth, font, textAlign, globalAlpha, dash, x, y} = this;
    this.kept.push({fillStyle, strokeStyle, lineWidth, font, textAlign, globalAlpha, dash, x, y});
  }
  restore() { Object.assign(this, this.kept.pop()); }
  translate(x, y) { this.x += x; this.y += y; }
  setLineDash(dash) { this.dash = dash; }

  measureText(text) {
    ruler.font = this.font;
    return ruler.measureText(text);
  }

  add(tag, attributes, text) {
    const alpha = this.globalAlpha === 1 ? "" : ` opacity="${this.globalAlpha}"`;
    const all = Object.entries(attributes).map(([name, value]) => ` ${name}="${value}"`).join("");
    this.parts.push(`<${tag}${all}${alpha}` + (text === undefined ? "/>" : `>${escaped(text)}</${tag}>`));
  }

  rectangle(x, y, width, height, more) {
    this.add("rect", {x: rounded(x + this.x), y: rounded(y + this.y), width: rounded(width),
                      height: rounded(height), ...more});
  }
  fillRect(x, y, width, height) { this.rectangle(x, y, width, height, {class: "f-" + this.fillStyle}); }
  strokeRect(x, y, width, height) {
    this.rectangle(x, y, width, height,
                   {class: "s-" + this.strokeStyle, fill: "none", "stroke-width": this.lineWidth});
  }

  beginPath() { this.path = ""; }
  point(letter, x, y) { this.path += letter + rounded(x + this.x) + " " + rounded(y + this.y); }
  moveTo(x, y) { this.point("M", x, y); }
  lineTo(x, y) { this.point("L", x, y); }
  closePath() { this.path += "Z"; }
  fill() { this.add("path", {d: this.path, class: "f-" + this.fillStyle}); }
  stroke() {
    const dash = this.dash.length > 0 ? {"stroke-dasharray": this.dash.join(" ")} : {};
    this.add("path", {d: this.path, class: "s-" + this.strokeStyle, "stroke-width": this.lineWidth, ...dash});
  }

  strokeText(text, x, y) { this.halo = [text, x, y].join(); }
  fillText(text, x, y) {
    // Under the head, what the edges would cut is left out.
    if (text === "" || (this.y > 0 && (y < 9 || y > this.height - 3))) return;
    const classes = ["f-" + this.fillStyle];
    if (this.halo === [text, x, y].join()) classes.push("halo");
    this.halo = null;
    const [, style, size] = this.font.match(/^(?:(\S+) )?([\d.]+)px/);
    const more = style === undefined ? {} : style === "italic" ? {"font-style": style} : {"font-weight": style};
    const anchor = {right: "end", center: "middle"}[this.textAlign];
    this.add("text", {x: rounded(x + this.x), y: rounded(y + this.y), class: classes.join(" "),
                      ...(anchor === undefined ? {} : {"text-anchor": anchor}),
                      ...(size === "11.5" ? {} : {"font-size": size}), ...more}, text);
  }
}

function stylesOf(theme) {
  document.documentElement.dataset.theme = theme;
  readColours();
  const rules = Object.entries(colours).map(([name, colour]) =>
      `.f-${name}{fill:${colour}}.s-${name}{stroke:${colour};fill:none}`);
  return rules.join("") + "text{white-space:pre}" + `.halo{stroke:${colours.paper};stroke-width:3;paint-order:stroke}`;
}

// A file of what stands from `top` on, in pixels of the page.
function svgOf(top, height, width) {
  const theme = document.documentElement.dataset.theme;
  const style = stylesOf("light") + "@media(prefers-color-scheme:dark){" + stylesOf("dark") + "}";
  for (const name of Object.keys(colours)) colours[name] = name;
  const c = new SvgContext(height);
  c.translate(0, kHeadHeight);
  const picture = new Picture(c, width, height, top);
  picture.draw();
  c.translate(0, -kHeadHeight);
  picture.drawHead();
  document.documentElement.dataset.theme = theme;
  readColours();
  const whole = Math.ceil(height + kHeadHeight);
  return `<svg xmlns="${kNamespace}" width="${width}" height="${whole}" ` +
         `viewBox="0 0 ${width} ${whole}" font-family="system-ui, sans-serif" font-size="11.5">` +
         `<title>${escaped(trace.title + ": " + trace.summary)}</title><style>${style}</style>\n` +
         c.parts.join("\n") + "\n</svg>\n";
}

function saveAs(name, type, text) {
  const link = document.createElement("a");
  link.download = name;
  link.href = URL.createObjectURL(new Blob([text], {type}));
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// What is seen now; all of a trace that ends before the window does.
function savePicture() {
  const height = Math.min(seenHeight(), view.height - view.top);
  saveAs(trace.title + ".svg", "image/svg+xml", svgOf(view.top, height, Math.max(canvas.clientWidth, 700)));
  spoken.textContent = "saved as " + trace.title + ".svg";
}
