import type { Chance } from './random.ts'

const pieces = [
  '\r\n',
  '\n',
  '\r',
  '\0',
  ' ',
  '\t',
  ':',
  ';',
  '--',
  '=',
  '"',
  '\\',
  '<',
  '>',
  '@',
  '\xff',
  'ü',
  '()',
  '%',
]
pieces.push(
  'Content-Type: multipart/report; boundary=b\r\n\r\n',
  '--b\r\n',
  'Content-Transfer-Encoding: base64\r\n',
  '\\x{',
)
pieces.push(
  'Content-Type: message/delivery-status\r\n\r\n',
  'Action: failed\r\n',
  'Final-Recipient: rfc822; ',
  '5.1.1',
  'a*0*=',
)

/** A mail with a few things done to it that nobody would do in good faith. */
export function mutated(mail: Buffer, chance: Chance): Buffer {
  let text = mail.toString('latin1')
  for (let n = 1 + chance.below(4); n > 0; n--) {
    const at = chance.below(text.length + 1)
    const to = Math.min(text.length, at + chance.below(60))
    text = chance.pick([
      () => text.slice(0, at) + text.slice(to),
      () => text.slice(0, at) + chance.pick(pieces) + text.slice(at),
      () => text.slice(0, at) + chance.pick(pieces).repeat(chance.below(40)) + text.slice(to),
      () => text.slice(0, at) + text.slice(chance.below(text.length + 1)),
      () => text.slice(0, at) + String.fromCharCode(chance.below(256)) + text.slice(at + 1),
    ])()
  }
  return Buffer.from(text, 'latin1')
}

/** Mails that are made to take long: many lines, parts, levels, fields and marks that open and never close. */
export const ponderousMails: readonly Buffer[] = (() => {
  const start = 'Content-Type: multipart/report; report-type=delivery-status; boundary="b"\r\n\r\n'
  const part = `${start}--b\r\nContent-Type: message/delivery-status\r\n`
  const levels = Array.from(
    { length: 300 },
    (_, n) => `--b${n || ''}\nContent-Type: multipart/mixed; boundary="b${n + 1}"\n\n`,
  )
  return [
    ...['\n', '--\n', '--b\n', '--b\n\n', 'x', '-', 'a:b\n\n', '\0'].map(
      (piece) => start + piece.repeat(200_000),
    ),
    ...['a:b\n', ' a\n', 'Final-Recipient: rfc822;', ':', 'Action: failed\n\n'].map(
      (piece) => `${part}\r\n${piece.repeat(50_000)}`,
    ),
    ...['=\n', '=3D', 'AAAA\n'].map(
      (piece) =>
        `${part}Content-Transfer-Encoding: ${piece === 'AAAA\n' ? 'base64' : 'quoted-printable'}\r\n\r\n${piece.repeat(50_000)}`,
    ),
    ...['a:b\r\n', '(', '"', '=?utf-8?q?a?= ', '<', 'a@b,', ';', '\r\n '].map(
      (piece) => `From: ${piece.repeat(60_000)}`,
    ),
    ...['(', '"', ';', 'a*0*=x;', '\r\n ', '\\', '='].map(
      (piece) => `Content-Type: multipart/report; ${piece.repeat(20_000)}`,
    ),
    ...['<', '<a ', '&#x', '</p>'].map((piece) => `Content-Type: text/html\r\n\r\n${piece.repeat(60_000)}`),
    start + levels.join(''),
  ].map((text) => Buffer.from(text, 'latin1'))
})()
