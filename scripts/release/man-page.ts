import { commonExits, type Manual, manual } from '../../server/src/bin/manual.ts'

const escaped = (text: string): string =>
  text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replaceAll(/^([.'])/gm, '\\&$1')

/** postern(1), from the table of commands. */
export function manPage(version: string, time: number): string {
  const day = new Date(time * 1000).toISOString().slice(0, 10)
  const commands = Object.entries(manual as Record<string, Manual>).flatMap(([name, { summary, verbs }]) => [
    `.SS ${escaped(name)}`,
    escaped(summary),
    ...Object.entries(verbs).flatMap(([verb, { about, options }]) => [
      '.TP',
      `.B ${escaped(['postern', name, verb].filter(Boolean).join(' '))}`,
      escaped(about),
      ...Object.entries(options).flatMap(([option, { value, about: meaning }]) => [
        '.RS',
        '.TP',
        `.BR ${escaped(`--${option}`)}${value === undefined ? '' : ` " ${escaped(value)}"`}`,
        escaped(meaning),
        '.RE',
      ]),
    ]),
  ])
  return `${[
    `.TH POSTERN 1 "${day}" "Postern ${version}" "Postern"`,
    '.SH NAME',
    'postern \\- self\\-hosted, multi\\-tenant email sending service',
    '.SH SYNOPSIS',
    '.B postern',
    '.RB [ \\-\\-settings',
    '.IR file ]',
    '.I command',
    '.RI [ options ]',
    '.SH DESCRIPTION',
    'Settings are read from the environment, then from the settings file. The systemd units read',
    '.IR /etc/postern/postern.env .',
    '.SH COMMANDS',
    ...commands,
    '.SH EXIT STATUS',
    ...commonExits.flatMap(({ code, about }) => ['.TP', `.B ${code}`, escaped(about)]),
    '.SH FILES',
    '.TP',
    '.I /etc/postern',
    'Settings and secrets.',
    '.TP',
    '.I /usr/lib/postern/deploy',
    'Configuration for Postfix, reverse proxies, PostgreSQL and Prometheus.',
  ].join('\n')}\n`
}
