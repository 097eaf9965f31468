import { exits, lineOf, type Manual, manual, type Option } from '../server/src/bin/manual.ts'

/** docs/operations/command.md, from the table that `postern --help` prints. */
export function commandPage(): string {
  const commands = Object.entries(manual as Record<string, Manual>).map(([name, page]) =>
    commandText(name, page),
  )
  return `# The command

<!-- Generated from server/src/bin/manual.ts by \`npm run generate\`. -->

Everything that is done at a shell is a \`postern\` command. \`postern --help\` lists them, and
\`postern <command> --help\` tells what stands here. All of them read the same [configuration](configuration.md), from the
environment or from a file. On a machine that was [installed](../guide/install.md) with systemd the whole line is this, as root:

<!-- not run: needs a machine that was installed; proofs/install.ts runs the like of it -->
\`\`\`
runuser -u postern -- postern --settings /etc/postern/postern.env doctor
\`\`\`

- **\`--json\`** prints one JSON document on standard output, for programs. Without it the text is for people, and may
  change between versions.
- Standard output has the answer; whatever else is to be told goes to standard error.
- Long work (\`migrate\`, \`secrets rewrap\`, \`audit verify\`, \`audit export\`) shows how far it is on standard error, if
  that is a terminal.

## Exit codes

| code | what it says |
|---|---|
${Object.values(exits)
  .map(({ code, about }) => `| ${code} | ${about} |`)
  .join('\n')}

A process that serves (\`all\`, \`api\`, \`worker\`, \`intake\`, \`signer\`) ends with 0 when it was told to stop and had finished, and with
1 when it could not finish within \`POSTERN_STOP_GRACE_SECONDS\`.

${commands.join('\n')}`
}

const notRun = '<!-- not run: a form; server/src/bin/manual.test.ts compares it with what --help prints -->'

function commandText(name: string, { summary, verbs }: Manual): string {
  const forms = Object.entries(verbs).map(([verb, form]) =>
    [notRun, '```', lineOf(name, verb, form), '```', '', form.about, '', ...optionTable(form.options)].join(
      '\n',
    ),
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
