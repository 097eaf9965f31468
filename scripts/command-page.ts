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

\`postern --help\` lists all commands, and \`postern <command> --help\` prints the section of this page about one command. All
commands read the same [configuration](configuration.md), from the environment or from a file. On a machine that was
[installed](../guide/install.md) with systemd, run commands like this, as root:

<!-- not run: needs an installed machine; proofs/install.ts runs similar commands -->
\`\`\`
runuser -u postern -- postern --settings /etc/postern/postern.env doctor
\`\`\`

- \`--json\` prints one JSON document to standard output, for programs. Without it, the output is for people and can change
  between versions.
- Results go to standard output; errors and progress go to standard error.
- Long commands (\`migrate\`, \`secrets rewrap\`, \`audit verify\`, \`audit export\`) show their progress on a terminal.
- Output is coloured only on a terminal, and never if \`NO_COLOR\` is set.

## Exit codes

| code | meaning |
|---|---|
${commonExits.map(({ code, about }) => `| ${code} | ${about} |`).join('\n')}

A long-running process (\`all\`, \`api\`, \`worker\`, \`intake\`, \`signer\`) exits with 0 after a clean shutdown, and with 1 if it
could not finish its work within \`POSTERN_STOP_GRACE_SECONDS\`.

${commands.join('\n')}`
}

const notRun =
  '<!-- not run: a synopsis; server/src/bin/manual.test.ts compares it with the output of --help -->'

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
  return rows.length === 0 ? [] : ['| option | meaning |', '|---|---|', ...rows, '']
}

const ownExits = ({ exits: names = [] }: Verb): string[] =>
  names.flatMap((name) => [`Exit code ${exits[name].code}: ${exits[name].about}`, ''])
