/**
 * How `postern` is called: every command, its verbs and their options, in one table. The options are read by it
 * (options.ts), `--help` prints it, and docs/operations/command.md is generated from it.
 */
export interface Option {
  /** What stands behind it, such as `<address>`; without one it is a switch. */
  value?: string
  about: string
  isRequired?: boolean
  /** May be given more than once. */
  isRepeated?: boolean
}

export interface Verb {
  about: string
  options: Record<string, Option>
}

export interface Manual {
  summary: string
  /** Under '' that of a command that has none. */
  verbs: Record<string, Verb>
}

/** What each exit code of every command says. */
export const exits = {
  done: { code: 0, about: 'Done; what was looked at is as it should be.' },
  failed: { code: 1, about: 'It failed, or what was looked at is not as it should be.' },
  misused: {
    code: 2,
    about: 'It was called in a way that cannot work: an option, a setting, or what it was told to do.',
  },
  notProved: {
    code: 3,
    about: '`audit verify` alone: the hashes agree with each other, and no signature was checked.',
  },
} as const

const json = { about: 'Print one JSON document instead of text.' } satisfies Option
const reason = { value: '<why>', about: 'Why, for the audit.' } satisfies Option
const email = {
  value: '<address>',
  about: 'The address with which they sign in.',
  isRequired: true,
} satisfies Option
const goesOn = { about: 'Runs until SIGTERM or SIGINT.', options: {} } satisfies Verb

const limit = {
  value: '<number>',
  about: 'How many queue ids of MTAs are shown, the newest first. By default: 100.',
} satisfies Option
const scope = {
  all: { about: 'All mail of this installation.' },
  project: { value: '<id>', about: 'The mail of one project, as an administrator holds it.' },
  provider: { value: '<name>', about: 'Mail that goes by one provider: service or ses.' },
} satisfies Record<string, Option>

export const manual = {
  all: { summary: 'api, worker and intake in one process, for a small installation.', verbs: { '': goesOn } },
  api: { summary: 'Serve the HTTP interface.', verbs: { '': goesOn } },
  worker: {
    summary: 'Do what nobody calls for: send mail, tell endpoints, look at DNS, sign the audit.',
    verbs: { '': goesOn },
  },
  intake: {
    summary: 'Take in mail of customers, bounces, delivery reports and complaints by SMTP.',
    verbs: { '': goesOn },
  },
  signer: {
    summary: 'Sign the checkpoints of the audit, as a user of its own that alone has the key.',
    verbs: { '': goesOn },
  },
  migrate: {
    summary: 'Bring the database to the version of this program.',
    verbs: {
      '': {
        about:
          'Shows what it is going to do, asks if there is a terminal to ask at, and does it: roles, then one migration after the other.',
        options: {
          plan: { about: 'Show what would be done, and do nothing.' },
          yes: { about: 'Do not ask.' },
          json,
        },
      },
    },
  },
  admin: {
    summary: 'Make an administrator, give one new credentials, or link one to an outside issuer.',
    verbs: {
      create: {
        about: 'Makes an administrator, and prints a password, an authenticator and backup codes, this once.',
        options: { email, name: { value: '<name>', about: 'By default: Administrator.' }, reason, json },
      },
      reset: {
        about: 'Gives an administrator new credentials, and ends every session.',
        options: { email, reason, json },
      },
      link: {
        about: 'Lets a login of an outside issuer (POSTERN_OIDC_ISSUERS) be this administrator.',
        options: {
          email,
          issuer: { value: '<iss>', about: 'The issuer, as its tokens name it.', isRequired: true },
          subject: {
            value: '<sub>',
            about: 'The login, as the tokens of the issuer name it.',
            isRequired: true,
          },
          reason,
          json,
        },
      },
    },
  },
  users: {
    summary: 'Give a user a link to set a new password.',
    verbs: {
      'reset-password': {
        about:
          'Prints a link to set a new password. It can be used once and expires after a day. Using it ends every session; the role and the second factor stay as they are.',
        options: { email, reason, json },
      },
    },
  },
  token: {
    summary: "Print an administrator's access token, good for ten minutes.",
    verbs: { '': { about: 'The audit keeps that it was drawn.', options: { email, json } } },
  },
  secrets: {
    summary: 'Show which master keys are in use, or bring every project key under the first one.',
    verbs: {
      status: { about: 'Shows which master keys wrap how many project keys.', options: { json } },
      rewrap: { about: 'Brings every project key under the first master key.', options: { json } },
    },
  },
  audit: {
    summary: 'Verify the audit, export it, sign a checkpoint of it, or erase a person from it.',
    verbs: {
      verify: {
        about: 'Looks whether the audit is as it was written: in the database, or in exports on any machine.',
        options: {
          file: {
            value: '<export>',
            about: 'An export to verify, in place of the database.',
            isRepeated: true,
          },
          checkpoints: {
            value: '<file>',
            about: 'A file of checkpoints. By default: the one that is configured.',
          },
          'public-key': {
            value: '<id:hex>',
            about: 'A key that signs checkpoints, as `postern audit key` prints it.',
            isRepeated: true,
          },
          json,
        },
      },
      export: {
        about: 'Writes the audit as lines of JSON, to standard output or to a file.',
        options: {
          out: { value: '<file>', about: 'A new file to write to; none that is there is written over.' },
          project: { value: '<id>', about: 'Of one project alone; 0 for what belongs to none.' },
          after: {
            value: '<next>',
            about: 'What an earlier export ended with as "next": only what came since.',
          },
          json: { about: 'With --out: print one JSON document of what was written.' },
        },
      },
      checkpoint: { about: 'Signs what has changed since the last checkpoint.', options: { json } },
      key: {
        about: 'Prints the public keys with which checkpoints are verified elsewhere.',
        options: { json },
      },
      erase: {
        about: 'Forgets a person: the audit stays whole, and no longer names them.',
        options: {
          email: { value: '<address>', about: 'The address that is forgotten.', isRequired: true },
          reason: { ...reason, isRequired: true },
          json,
        },
      },
    },
  },
  cell: {
    summary: 'Give a cell its copy of control, where mail has databases of its own.',
    verbs: {
      join: {
        about:
          'Copies what the cell reads of control, and has it follow. Once for each cell, and after each migration.',
        options: { name: { value: '<cell>', about: 'As POSTERN_CELLS names it.', isRequired: true }, json },
      },
    },
  },
  init: {
    summary:
      'Write what this machine needs: settings with fresh secrets, systemd units, the configuration of Postfix.',
    verbs: {
      '': {
        about: 'Starts nothing. Called again, it keeps every secret and setting that is there.',
        options: {
          'public-url': {
            value: '<url>',
            about: 'The address at which people and programs reach Postern.',
            isRequired: true,
          },
          user: { value: '<name>', about: 'As whom it runs. By default: postern.' },
          'signer-user': {
            value: '<name>',
            about: 'The user that runs the signer of the audit. By default: the name of --user and -signer.',
          },
          'migrate-user': {
            value: '<name>',
            about: 'The user that migrates the database. By default: the name of --user and -migrate.',
          },
          directory: { value: '<path>', about: 'For settings and secrets. By default: /etc/postern.' },
          systemd: { value: '<path>', about: 'For the units. By default: /etc/systemd/system.' },
          postfix: {
            value: '<path>',
            about: 'For the configuration of Postfix. By default none is written.',
          },
          json,
        },
      },
    },
  },
  project: {
    summary: 'Make a project with a domain and an API key, for a first mail.',
    verbs: {
      create: {
        about: 'By way of the API of this machine, so that everything is checked and recorded.',
        options: {
          email: { ...email, about: 'The administrator in whose name it is done.' },
          domain: { value: '<name>', about: 'The domain to send from.', isRequired: true },
          name: { value: '<name>', about: 'Of the project. By default: the domain.' },
          json,
        },
      },
    },
  },
  health: {
    summary: 'Tell by the exit code whether the API of this machine is ready.',
    verbs: {
      '': {
        about: 'For those that keep processes running.',
        options: {
          wait: { value: '<seconds>', about: 'How long to wait for it. By default: not at all.' },
          json,
        },
      },
    },
  },
  doctor: {
    summary: 'Look at everything that this installation stands on, and say what to do about what is wrong.',
    verbs: {
      '': {
        about:
          'Reads only, and prints no secret. Ends with 1 when there is a failure; warnings are for you to weigh.',
        options: {
          all: { about: 'Tell also what is as it should be.' },
          json,
        },
      },
    },
  },
  queue: {
    summary: 'Look at the mail that is still to be handed over, hold it, or let it go on.',
    verbs: {
      look: {
        about:
          'Shows how much waits, of whom and for what, and the queue ids under which MTAs have mail that is not settled.',
        options: {
          project: { value: '<id>', about: 'Of one project alone.' },
          limit,
          json,
        },
      },
      hold: {
        about:
          'Keeps workers from claiming mail: all of it, that of a project, or that of a provider. It is accepted as before; what is held for 7 days fails.',
        options: { ...scope, reason: { ...reason, isRequired: true }, limit, json },
      },
      release: {
        about: 'Lets go what was held by the same option.',
        options: { ...scope, reason: { ...reason, isRequired: true }, json },
      },
    },
  },
  version: { summary: 'Print the version.', verbs: { '': { about: 'Of this program.', options: { json } } } },
} satisfies Record<string, Manual>

export type CommandName = keyof typeof manual

const named = (name: string, { value, isRequired, isRepeated }: Option): string => {
  const text = value === undefined ? `--${name}` : `--${name} ${value}`
  return `${isRequired ? text : `[${text}]`}${isRepeated ? ' …' : ''}`
}

/** `postern audit erase --email <address> --reason <why> [--json]` */
export const lineOf = (command: string, verb: string, { options }: Verb): string =>
  [
    'postern',
    command,
    ...(verb === '' ? [] : [verb]),
    ...Object.entries(options).map((one) => named(...one)),
  ].join(' ')

/** The ways in which a command is called. */
export const usageOf = (command: string, { verbs }: Manual): string =>
  `Usage:\n${Object.entries(verbs)
    .map(([verb, form]) => `  ${lineOf(command, verb, form)}`)
    .join('\n')}`

export function helpOf(command: string, page: Manual): string {
  const forms = Object.entries(page.verbs).map(([verb, form]) => {
    const options = Object.entries(form.options).map(
      ([name, { value, about }]) => `      ${`--${name}${value ? ` ${value}` : ''}`.padEnd(24)} ${about}`,
    )
    return [`  ${lineOf(command, verb, form)}`, `      ${form.about}`, ...options].join('\n')
  })
  return `${page.summary}\n\nUsage:\n${forms.join('\n\n')}\n\n${exitText}\n`
}

export const exitText = `Exit codes:\n${Object.values(exits)
  .map(({ code, about }) => `  ${code}  ${about}`)
  .join('\n')}`
