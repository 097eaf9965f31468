/**
 * The message used in measurements: 6 KB of words, a third as text and the rest as HTML. It uses real words, because
 * PostgreSQL compresses stored data.
 */
export interface SampleMessage {
  subject: string
  text: string
  html: string
}

const words =
  `the of and to in is you that it he was for on are as with his they at be this have from or one had by word
  but not what all were we when your can said there use an each which she do how their if will up other about out many
  then them these so some her would make like him into time has look two more write go see number no way could people
  my than first water been call who oil its now find long down day did get come made may part invoice order delivery
  account password shipment receipt confirm payment customer address support telephone unsubscribe`.split(
    /\s+/,
  )

export function makeSampleMessage(bytes = 6000): SampleMessage {
  const subject = 'Your order is on its way'
  const text = prose(bytes / 3, '\n')
  const html = `<!doctype html><html><body style="font-family: sans-serif">${prose((bytes * 2) / 3 - 120, '</p>\n<p>')}</body></html>`
  return { subject, text, html }
}

/** Produces the same sequence in every run: a Park–Miller generator. */
function prose(length: number, between: string): string {
  let state = 20_261_115
  let said = ''
  for (let count = 1; said.length < length; count++) {
    state = (state * 48_271) % 2_147_483_647
    said += (words[state % words.length] ?? '') + (count % 12 === 0 ? `.${between}` : ' ')
  }
  return said
}
