/**
 * The command line of `postern`: every command, its verbs and their options, in one table. `options.ts` parses
 * arguments with it, `--help` prints it, and docs/operations/command.md and the shell completion (completion.ts) are
 * generated from it.
 */
export interface Option {
  /** The placeholder for its value, such as `<address>`. An option without a value is a flag. */
  value?: string
  about: string
  isRequired?: boolean
  /** The option can be repeated. */
  isRepeated?: boolean
}

export interface Verb {
  about: string
  options: Record<string, Option>
  /** Exit codes specific to this verb. */
  exits?: readonly ExitName[]
}

export interface Manual {
  summary: string
  /** A command without verbs has one entry, under ''. */
  verbs: Record<string, Verb>
}

/** Every exit code and its meaning. */
export const exits = {
  done: { code: 0, about: 'Success.' },
  failed: { code: 1, about: 'The command failed, or a check found a problem.' },
  misused: { code: 2, about: 'Usage error: an invalid command, option, argument or setting.' },
  notProved: { code: 3, about: 'The hashes are consistent, but no signature was checked.' },
} as const

type ExitName = keyof typeof exits

/** The exit codes that all commands share. */
export const commonExits = [exits.done, exits.failed, exits.misused]

const json = { about: 'Print one JSON document instead of text.' } satisfies Option
const reason = { value: '<text>', about: 'The reason, recorded in the audit log.' } satisfies Option
const rights = {
  value: '<rights>',
  about: 'What the administrator can do: full, support, billing or auditor.',
} satisfies Option
const email = {
  value: '<address>',
  about: 'The email address that the user signs in with.',
  isRequired: true,
} satisfies Option
const runsUntilStopped = { about: 'Runs until SIGTERM or SIGINT.', options: {} } satisfies Verb

const limit = {
  value: '<number>',
  about: 'How many MTA queue ids to list, newest first. Default: 100.',
} satisfies Option
const scope = {
  all: { about: 'All mail in this installation.' },
  project: { value: '<id>', about: "One project's mail." },
  provider: { value: '<name>', about: 'Mail to one provider: service or ses.' },
} satisfies Record<string, Option>
const completionOf = (shell: string, install: string) =>
  ({ about: `Prints the completion script for ${shell}. ${install}`, options: {} }) satisfies Verb

export const manual = {
  all: {
    summary: 'Run api, worker and intake in one process, for a small installation.',
    verbs: { '': runsUntilStopped },
  },
  api: { summary: 'Serve the HTTP API and the console.', verbs: { '': runsUntilStopped } },
  worker: {
    summary: 'Run background work: deliver mail and webhooks, check DNS, sign the audit log.',
    verbs: { '': runsUntilStopped },
  },
  intake: {
    summary: 'Receive submitted mail, inbound mail, bounces, delivery reports and complaints over SMTP.',
    verbs: { '': runsUntilStopped },
  },
  signer: {
    summary:
      'Sign audit checkpoints and evidence as a separate user, the only one that can read the signing key.',
    verbs: { '': runsUntilStopped },
  },
  migrate: {
    summary: "Migrate the database to this program's version.",
    verbs: {
      '': {
        about:
          'Creates the roles and applies every pending migration. On a terminal, shows the plan and asks for confirmation first.',
        options: {
          plan: { about: 'Show the pending migrations and change nothing.' },
          yes: { about: 'Do not ask for confirmation.' },
          json,
        },
      },
    },
  },
  admin: {
    summary:
      'Create an administrator, reset their credentials, or link them to an external issuer and unlink them.',
    verbs: {
      create: {
        about:
          'Creates an administrator. Prints the password, the authenticator URI and the backup codes, which cannot be shown again.',
        options: {
          email,
          name: { value: '<name>', about: 'Default: Administrator.' },
          rights: { ...rights, about: `${rights.about} Default: full.` },
          reason,
          json,
        },
      },
      reset: {
        about: 'Issues new credentials to an administrator and revokes all their sessions.',
        options: {
          email,
          rights: {
            ...rights,
            about: `${rights.about} Default: unchanged, or full for a new administrator.`,
          },
          reason,
          json,
        },
      },
      link: {
        about: 'Lets a user of an external issuer (POSTERN_OIDC_ISSUERS) sign in as this administrator.',
        options: {
          email,
          issuer: { value: '<iss>', about: "The `iss` claim in the issuer's tokens.", isRequired: true },
          subject: { value: '<sub>', about: "The `sub` claim in the user's tokens.", isRequired: true },
          reason,
          json,
        },
      },
      unlink: {
        about:
          "Removes the link of a user to an external issuer, made by `postern admin link` or by the user, and revokes all of the user's sessions and tokens. Other ways to sign in stay.",
        options: {
          email,
          issuer: { value: '<iss>', about: 'The issuer of the link.', isRequired: true },
          subject: { value: '<sub>', about: 'The subject of the link.', isRequired: true },
          reason,
          json,
        },
      },
    },
  },
  users: {
    summary: "Issue a password reset link to a user, or remove a customer's second factor.",
    verbs: {
      'reset-password': {
        about:
          "Prints a link to set a new password. The link works once and expires after a day. Using it revokes all of the user's sessions; the role and two-factor authentication do not change.",
        options: { email, reason, json },
      },
      'reset-second-factor': {
        about:
          'Removes the authenticator and the backup codes of a user who is not an administrator, and revokes all their sessions and tokens. The user then signs in with the password alone. Passkeys are removed too: a lost device may hold them, and one that asks for no PIN would be enough to sign in. Verify first that you talk to the owner of the account.',
        options: { email, reason: { ...reason, isRequired: true }, json },
      },
    },
  },
  token: {
    summary: 'Issue an access token for an administrator, valid for ten minutes.',
    verbs: { '': { about: 'The audit log records that the token was issued.', options: { email, json } } },
  },
  secrets: {
    summary: 'Show which master keys are in use, or rewrap every project key under the first one.',
    verbs: {
      status: { about: 'Shows how many project keys each master key wraps.', options: { json } },
      rewrap: { about: 'Rewraps every project key under the first master key.', options: { json } },
    },
  },
  audit: {
    summary: 'Verify or export the audit log, sign a checkpoint, or erase a person from it.',
    verbs: {
      verify: {
        about:
          'Checks that no audit entry has been altered, in the database or in exported files, or that an evidence file has not been altered.',
        options: {
          file: {
            value: '<export>',
            about: 'An exported file to verify instead of the database.',
            isRepeated: true,
          },
          evidence: { value: '<file>', about: 'An evidence file to verify instead of the database.' },
          checkpoints: {
            value: '<file>',
            about: 'A checkpoint file. Default: POSTERN_AUDIT_CHECKPOINT_FILE.',
          },
          'public-key': {
            value: '<id:hex>',
            about: 'A public key to verify signatures with, as `postern audit key` prints it.',
            isRepeated: true,
          },
          json,
        },
        exits: ['notProved'],
      },
      export: {
        about: 'Writes the audit log as JSON lines, to standard output or to a file.',
        options: {
          out: { value: '<file>', about: 'The file to create. An existing file is never overwritten.' },
          project: {
            value: '<id>',
            about: "Only one project's entries; 0 for entries without a project.",
          },
          after: {
            value: '<next>',
            about: 'Only entries newer than an earlier export: the value of "next" from its last line.',
          },
          json: { about: 'With --out: print a summary as one JSON document.' },
        },
      },
      checkpoint: {
        about: 'Signs a checkpoint for the entries written since the last one.',
        options: { json },
      },
      key: {
        about: 'Prints the public keys that verify checkpoints, for use on another machine.',
        options: { json },
      },
      erase: {
        about: "Erases a person from the audit log. The log's hash chains stay valid.",
        options: {
          email: { value: '<address>', about: 'The email address to erase.', isRequired: true },
          reason: { ...reason, isRequired: true },
          json,
        },
      },
    },
  },
  cell: {
    summary: 'Replicate the control schema to a cell, if mail is stored in separate databases.',
    verbs: {
      join: {
        about:
          'Copies the control tables that the cell reads, and starts replication. Run it once for each cell, and after each migration.',
        options: {
          name: { value: '<cell>', about: 'The name of the cell in POSTERN_CELLS.', isRequired: true },
          json,
        },
      },
    },
  },
  setup: {
    summary:
      'Set up this machine: settings, secrets, database, services, the first administrator, DNS records.',
    verbs: {
      '': {
        about:
          'Asks for what is not given by an option; without a terminal, uses the defaults. If run again, keeps every existing secret and setting.',
        options: {
          host: {
            value: '<name>',
            about:
              'The public host name of this installation. Default: the name of this machine, if it has a domain.',
          },
          admin: { value: '<address>', about: 'The email address of the first administrator.' },
          'return-path-host': {
            value: '<name>',
            about: 'The host that receives bounces. Default: `bounces.` and the host name.',
          },
          'front-end': {
            value: '<name>',
            about:
              'The reverse proxy to configure: caddy, nginx or none. Default: the one that is installed.',
          },
          'system-mail-from': {
            value: '<address>',
            about: 'The sender of invitations and password links. Default: `postern@` and the host name.',
          },
          postfix: {
            value: '<path>',
            about:
              'The directory of the Postfix configuration to replace, or none. Default: /etc/postfix, if Postfix is not used yet.',
          },
          'write-only': {
            about: 'Only write the files: create no users and no database, and start nothing.',
          },
          user: { value: '<name>', about: 'The system user that runs Postern. Default: postern.' },
          'signer-user': {
            value: '<name>',
            about: 'The system user that runs the audit signer. Default: the value of --user plus "-signer".',
          },
          'migrate-user': {
            value: '<name>',
            about:
              'The system user that migrates the database. Default: the value of --user plus "-migrate".',
          },
          directory: {
            value: '<path>',
            about: 'The directory for settings and secrets. Default: /etc/postern.',
          },
          systemd: {
            value: '<path>',
            about:
              'The directory for systemd units. Default: /etc/systemd/system, or none if the package contains them.',
          },
          json,
        },
      },
    },
  },
  project: {
    summary: 'Create a project with a domain and an API key, to send a first message.',
    verbs: {
      create: {
        about: "Calls this machine's API, so all checks and the audit log apply.",
        options: {
          email: { ...email, about: 'The administrator on whose behalf the project is created.' },
          domain: { value: '<name>', about: 'The domain to send from.', isRequired: true },
          name: { value: '<name>', about: 'The name of the project. Default: the domain.' },
          json,
        },
      },
    },
  },
  health: {
    summary: "Report through the exit code whether this machine's API is ready.",
    verbs: {
      '': {
        about: 'For container health checks and process supervisors.',
        options: {
          wait: {
            value: '<seconds>',
            about: 'How long to wait for the API to become ready. Default: 0.',
          },
          json,
        },
      },
    },
  },
  doctor: {
    summary: 'Check this installation and print a remedy for each problem found.',
    verbs: {
      '': {
        about:
          'Changes nothing and prints no secret. Exits with 1 if a check fails; warnings do not affect the exit code.',
        options: {
          verbose: { about: 'Also list passed and skipped checks, and every individual finding.' },
          json,
        },
      },
    },
  },
  queue: {
    summary: 'Show, hold or release the mail that is waiting to be sent.',
    verbs: {
      show: {
        about:
          'Shows how much mail is waiting, by project and reason, and the MTA queue ids of mail awaiting a delivery report.',
        options: {
          project: { value: '<id>', about: "Only one project's mail." },
          limit,
          json,
        },
      },
      hold: {
        about:
          "Stops workers from sending mail: all of it, one project's mail, or mail to one provider. New mail is still accepted. Mail fails after it has been held for 7 days.",
        options: { ...scope, reason: { ...reason, isRequired: true }, limit, json },
      },
      release: {
        about: 'Removes a hold that was set with the same option.',
        options: { ...scope, reason: { ...reason, isRequired: true }, json },
      },
    },
  },
  policies: {
    summary: 'List the policies, or turn all of them off.',
    verbs: {
      list: { about: 'Shows the id, the mode and the name of each policy.', options: { json } },
      off: {
        about:
          'Sets the mode of every policy to off, so that no policy is evaluated. Interventions that policies have started stay in force.',
        options: { reason, json },
      },
    },
  },
  completion: {
    summary: 'Print a shell completion script.',
    verbs: {
      bash: completionOf('bash', 'Install: postern completion bash > /etc/bash_completion.d/postern'),
      zsh: completionOf(
        'zsh',
        'Install: postern completion zsh > /usr/local/share/zsh/site-functions/_postern',
      ),
    },
  },
  version: {
    summary: 'Print the version.',
    verbs: { '': { about: 'Prints the version of this program.', options: { json } } },
  },
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

/** The usage text: all forms of a command. */
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
  const ownExits = Object.entries(page.verbs).flatMap(([verb, { exits: names = [] }]) =>
    names.map((name) => `  ${exits[name].code}  Only \`${command} ${verb}\`: ${exits[name].about}`),
  )
  return `${page.summary}\n\nUsage:\n${forms.join('\n\n')}\n\n${[exitText, ...ownExits].join('\n')}\n`
}

export const exitText = `Exit codes:\n${commonExits.map(({ code, about }) => `  ${code}  ${about}`).join('\n')}`
