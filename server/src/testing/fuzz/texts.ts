import type { Chance } from '../harness/random.ts'
import { weighted } from './draw.ts'

/**
 * Strings that often break programs: SQL, paths, markup, templates, characters that grow when upper-cased, and
 * control sequences for terminals and logs.
 */
export const hostileTexts: readonly string[] = [
  "'; drop table control.projects; --",
  "' or '1'='1",
  '1; select pg_sleep(10)',
  '\\',
  '%',
  '_%_',
  '{"$gt":""}',
  '{{7*7}}',
  '$' + '{7*7}',
  '$(id)',
  '`id`',
  '../../../../etc/passwd',
  '..\\..\\windows\\win.ini',
  'file:///etc/passwd',
  '<script>alert(1)</script>',
  '"><img src=x onerror=alert(1)>',
  '__proto__',
  'constructor',
  'prototype',
  'hasOwnProperty',
  'toString',
  'null',
  'undefined',
  'NaN',
  'true',
  '0',
  '-1',
  '1e400',
  '0x10',
  '9007199254740993',
  'İıſK',
  'ﷺ'.repeat(8),
  'e\u0301\u0302\u0303',
  'ß',
  '👩‍👩‍👧‍👦',
  '𝕳𝖊𝖑𝖑𝖔',
  '日本語',
  'עברית',
  'مرحبا',
  'Ω≈ç√∫˜µ≤≥÷',
  '\u00a0name\u00a0',
  '\ufeffbom',
  'a\u200bb',
  'x'.repeat(100),
  '𝒳'.repeat(100),
  'en\u2013dash',
  '%00',
  '%0d%0aSet-Cookie: a=b',
  'Bearer pk_live_x',
  'a,b;c|d&e',
  "E'\\x41'",
  '$1',
  ':name',
  '?',
]

/** Strings that are not allowed as a single line of text. */
export const badLines: readonly string[] = [
  ' ',
  '\t',
  '\u200b',
  '\u00a0\u2003',
  'two\nlines',
  'cr\rlf\r\n.',
  'tab\tinside',
  'bell\u0007',
  'esc\u001b[31m',
  'del\u007f',
  'c1\u0085x',
  'line\u2028separator',
  'paragraph\u2029separator',
  'turned\u202etxet',
  'isolate\u2066x\u2069',
]

const words = [
  'Acme',
  'Order',
  'mail',
  'north',
  'Grace',
  'beta',
  'zwölf',
  'Été',
  'plan',
  'x',
  '42',
  'A & B',
  "O'Neill",
]

/** Usually a plain name, sometimes a hostile but valid one, occasionally an invalid one. */
export function nameText(chance: Chance): string {
  return weighted<() => string>(chance, [
    [60, () => `${chance.pick(words)} ${chance.pick(words)} ${chance.below(1000)}`],
    [20, () => chance.pick(hostileTexts)],
    [8, () => `  ${chance.pick(words)}\u00a0 `],
    [5, () => chance.pick(['a', '.', '💥', 'y'.repeat(100), '𝒴'.repeat(100)])],
    [7, () => chance.pick(badLines)],
  ])()
}

/** A short, always valid name. */
export const plainText = (chance: Chance): string => `${chance.pick(words)} ${chance.below(100_000)}`

export function reasonText(chance: Chance): string {
  return weighted<() => string>(chance, [
    [80, () => `Asked for by the customer, ticket ${chance.below(10_000)}`],
    [10, () => `${chance.pick(hostileTexts)} ${chance.below(10)}`],
    [5, () => ` ${'z'.repeat(496)} ${chance.below(10)} `],
    [5, () => '𝒵'.repeat(500)],
  ])()
}

/** Allowed by the schema but rejected: blank, or with control characters. */
export const badReason = (chance: Chance): string => chance.pick(badLines)
