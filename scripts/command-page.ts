import {
  commonExits,
  exits,
  lineOf,
  type Manual,
  manual,
  type Option,
  type Verb,
} from '../server/src/bin/manual.ts'

/** Builds docs/operations/command.md from the table that `postern --help` prints. */
export function commandPage(): string {
  const commands = Object.entries(manual as Record<string, Manual>).map(([name, page]) =>
    commandText(name, page),
  )
  return `# Command line

<!-- Generated from server/src/bin/manual.ts by \`npm run generate\`. -->

\`postern --help\` lists every command, and \`postern <command> --help\` prints what this page says about one. All commands
read the same [configuration](configuration.md), from the environment or from a file. On a machine that was
[installed](../guide/install.md) with systemd, run this as root:

<!-- not run: needs a machine that was installed; proofs/install.ts runs the like of it -->
\`\`\`
runuser -u postern -- postern --settings /etc/postern/postern.env doctor
\`\`\`

- **\`--json\`** prints one JSON document on standard output, for programs. Without it the text is for people, and may
  change between versions.
- Results go to standard output; errors and progress go to standard error.
- Long commands (\`migrate\`, \`secrets rewrap\`, \`audit verify\`, \`audit export\`) show their progress on a terminal.
- Colours are used on a terminal only, and never if \`NO_COLOR\` is set.

## Exit codes

| code | meaning |
|---|---|
${commonExits.map(({ code, about }) => `| ${code} | ${about} |`).join('\n')}

A serving process (\`all\`, \`api\`, \`worker\`, \`intake\`, \`signer\`) exits with 0 when it stopped cleanly on a signal, and with 1
when it could not finish within \`POSTERN_STOP_GRACE_SECONDS\`.

${commands.join('\n')}`
}

const notRun = '<!-- not run: a form; server/src/bin/manual.test.ts compares it with what --help prints -->'

function commandText(name: string, { summary, verbs }: Manual): string {
  const forms = Object.entries(verbs).map(([verb, form]) =>
    [
      ...[notRun, '```', lineOf(name, verb, form), '```', '', form.about, ''],
      ...optionTable(form.options),
      ...ownExits(form),
    ].join('\n'),
  )
  return [`## postern ${name}`, '', summary, '', ...forms].join('\n')
}

function optionTable(options: Record<string, Option>): string[] {
  const rows = Object.entries(options).map(
    ([name, { value, about }]) =>
      `| \`--${name}${value ? ` ${value}` : ''}\` | ${about.replaceAll('|', '\\|')} |`,
  )
  return rows.length === 0 ? [] : ['| option | |', '|---|---|', ...rows, '']
}

const ownExits = ({ exits: names = [] }: Verb): string[] =>
  names.flatMap((name) => [`Exit code ${exits[name].code}: ${exits[name].about}`, ''])
