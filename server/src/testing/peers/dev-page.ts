/** The pages that `npm run dev` serves beside Postern: sent mail and received webhooks. They run no scripts. */
export const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')

export interface DevPage {
  title: string
  body: string
  /** A list reloads every few seconds. */
  isList?: boolean
}

export const devPage = ({ title, body, isList = false }: DevPage): string => `<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
${isList ? '<meta http-equiv="refresh" content="5">' : ''}
<title>${escaped(title)}</title>
<style>
  :root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif }
  body { max-width: 70rem; margin: 2rem auto; padding: 0 1rem }
  nav a { margin-right: 1.2rem }
  .table { overflow-x: auto }
  table { border-collapse: collapse; width: 100% }
  th, td { text-align: left; padding: .4rem .8rem .4rem 0; border-bottom: 1px solid #8884; vertical-align: top }
  pre { white-space: pre-wrap; overflow-wrap: anywhere; background: #8881; padding: 1rem; border-radius: 6px }
  code { overflow-wrap: anywhere }
  iframe { width: 100%; height: 24rem; border: 1px solid #8884; border-radius: 6px; background: #fff }
  .bad { color: light-dark(#b00020, #ff8a80); font-weight: 600 }
</style>
<nav><a href="/">Sent mail</a><a href="/webhooks">Webhooks</a></nav>
<h1>${escaped(title)}</h1>
${body}
</html>
`

export const table = (headings: readonly string[], rows: readonly string[]): string =>
  `<div class="table"><table><tr>${headings.map((text) => `<th>${text}</th>`).join('')}</tr>${rows.join('')}</table></div>`
