/**
 * Hosts that are not part of the public internet, in every spelling that somebody might try to get inside with. Each is
 * as it would stand in the address of an endpoint, behind https:// and before the port.
 */

/** One or more of each range that is set apart, its ends among them, and what is known to be worth calling. */
export const insideV4 = [
  '0.0.0.0',
  '0.255.255.255',
  '10.0.0.0',
  '10.1.2.3',
  '10.255.255.255',
  '100.64.0.1',
  '100.127.255.254',
  '127.0.0.1',
  '127.0.0.53',
  '127.255.255.254',
  '169.254.0.1',
  // Where clouds tell a machine its credentials.
  '169.254.169.254',
  '169.254.170.2',
  '100.100.100.200',
  '192.0.0.192',
  '172.16.0.1',
  '172.31.255.254',
  '192.0.0.1',
  '192.0.2.1',
  '192.31.196.1',
  '192.52.193.1',
  '192.88.99.1',
  '192.168.0.1',
  '192.168.255.254',
  '192.175.48.1',
  '198.18.0.1',
  '198.19.255.254',
  '198.51.100.1',
  '203.0.113.1',
  '224.0.0.1',
  '239.255.255.255',
  '240.0.0.1',
  '255.255.255.255',
] as const

export const insideV6 = [
  '::',
  '::1',
  '::2',
  '64:ff9b:1::1',
  '64:ff9b:1:ffff::a00:1',
  '100::1',
  '100:0:0:1::1',
  '2001::1',
  '2001:2::1',
  '2001:3::1',
  '2001:4:112::1',
  '2001:10::1',
  '2001:20::1',
  '2001:30::1',
  '2001:db8::1',
  '2620:4f:8000::1',
  '3fff::1',
  '4000::1',
  '5f00::1',
  'fc00::1',
  'fd00:ec2::254',
  'fdff:ffff::1',
  'fe80::1',
  'febf::1',
  'fec0::1',
  'ff02::1',
  'ff0e::1',
] as const

/** Addresses that carry the IPv4 one in them, as hexadecimal groups. */
export const embedding = (v4: string): string[] => {
  const [high, low] = halvesOf(v4)
  return [
    // RFC 4291 §2.5.5.2 and §2.5.5.1, RFC 2765, RFC 6052, RFC 8215, RFC 3056.
    `::ffff:${high}:${low}`,
    `::${high}:${low}`,
    `::ffff:0:${high}:${low}`,
    `64:ff9b::${high}:${low}`,
    `64:ff9b:1::${high}:${low}`,
    `2002:${high}:${low}::1`,
    // RFC 4380 §4: the client's address with every bit turned round.
    `2001:0:${high}:${low}:0:0:${turned(high)}:${turned(low)}`,
  ]
}

/** Literals: every one must be refused by its spelling alone. */
export const insideLiterals: string[] = [
  ...insideV4.flatMap(spellingsOfV4),
  ...insideV4.flatMap((v4) => [...embedding(v4), `::ffff:${v4}`, `::${v4}`, `64:ff9b::${v4}`]).map(bracketed),
  ...insideV6.flatMap(spellingsOfV6),
]

/** Names that mean something inside alone, or nothing at all. */
export const insideNames: string[] = [
  'localhost',
  'LOCALHOST',
  'localhost.',
  'ⓛocalhost',
  'l%6fcalhost',
  'a.localhost',
  'localhost.localdomain.',
  'printer.local',
  'db.internal',
  'metadata.google.internal',
  'metadata.google.internal.',
  'router.home.arpa',
  'hidden.onion',
  'intranet',
  'ip6-localhost',
  'host-with-no-dot',
]

function spellingsOfV4(v4: string): string[] {
  const octets = v4.split('.').map(Number)
  const [a = 0, b = 0, c = 0, d = 0] = octets
  const hex = (n: number) => `0x${n.toString(16)}`
  const octal = (n: number) => `0${n.toString(8)}`
  const whole = octets.reduce((sum, octet) => sum * 256 + octet, 0)
  return [
    v4,
    `${v4}.`,
    String(whole),
    hex(whole),
    hex(whole).toUpperCase().replace('0X', '0X'),
    octal(whole),
    `0000${octal(whole)}`,
    octets.map(hex).join('.'),
    octets.map(octal).join('.'),
    octets.map((octet) => `00${octal(octet)}`).join('.'),
    [a, hex(b), octal(c), d].join('.'),
    [hex(a), octal(b), c, hex(d)].join('.'),
    [a, b * 65_536 + c * 256 + d].join('.'),
    [hex(a), hex(b * 65_536 + c * 256 + d)].join('.'),
    [a, b, c * 256 + d].join('.'),
    [octal(a), hex(b), c * 256 + d].join('.'),
    wide(v4),
    circled(v4),
    v4.replaceAll('.', '。'),
    wide(String(whole)),
    percent(v4),
    percent(String(whole)),
    percent(hex(whole)),
    v4.replaceAll('.', '%2e'),
  ]
}

function spellingsOfV6(v6: string): string[] {
  const [front = '', back] = v6.split('::')
  const groups = (part: string) => part.split(':').filter((group) => group !== '')
  const [before, after] = [groups(front), groups(back ?? '')]
  const all = [...before, ...Array(8 - before.length - after.length).fill('0'), ...after]
  const padded = all.map((group) => group.padStart(4, '0')).join(':')
  return [
    v6,
    v6.toUpperCase(),
    all.join(':'),
    padded,
    padded.toUpperCase(),
    `${all.slice(0, 6).join(':')}:${dotted(all[6], all[7])}`,
    `${v6}%25eth0`,
    `${v6}%25lo`,
  ].map(bracketed)
}

function bracketed(v6: string): string {
  return `[${v6}]`
}

function halvesOf(v4: string): [string, string] {
  const [a = 0, b = 0, c = 0, d = 0] = v4.split('.').map(Number)
  return [(a * 256 + b).toString(16), (c * 256 + d).toString(16)]
}

function turned(group: string): string {
  return (Number.parseInt(group, 16) ^ 0xffff).toString(16)
}

function dotted(high: string, low: string): string {
  const octets = [high, low].flatMap((group) => {
    const value = Number.parseInt(group, 16)
    return [value >> 8, value & 255]
  })
  return octets.join('.')
}

/** Full-width digits and stops: the same to a parser of hosts (UTS #46). */
function wide(text: string): string {
  return text.replace(/[\d.]/g, (sign) => String.fromCharCode(sign.charCodeAt(0) + 0xfee0))
}

function circled(text: string): string {
  return text.replace(/[1-9]/g, (digit) => String.fromCharCode(0x245f + Number(digit)))
}

function percent(text: string): string {
  return Array.from(text, (sign) => `%${sign.charCodeAt(0).toString(16)}`).join('')
}
