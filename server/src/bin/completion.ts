/**
 * `postern completion bash|zsh`: completion scripts for commands, verbs and options, generated from the manual. They
 * are static: pressing Tab does not start a `postern` process.
 */
import { command, say } from './command.ts'
import { type Manual, manual, type Option, type Verb } from './manual.ts'

const pages: [name: string, page: Manual][] = Object.entries(manual)

export const completion = command('completion', {
  bash: async () => say(bashCompletion()),
  zsh: async () => say(zshCompletion()),
})

const hasVerbs = ({ verbs }: Manual): boolean => !Object.hasOwn(verbs, '')
const optionNames = ({ options }: Verb): string[] => [
  ...Object.keys(options).map((name) => `--${name}`),
  '--help',
]

/** Options whose value is a path. */
const takesFile = ({ value = '' }: Option): boolean => ['<file>', '<path>', '<export>'].includes(value)

function optionsThat(test: (option: Option) => boolean): string[] {
  const named = pages
    .flatMap(([, { verbs }]) => Object.values(verbs).flatMap(({ options }) => Object.entries(options)))
    .filter(([, option]) => test(option))
    .map(([name]) => `--${name}`)
  return [...new Set(named)]
}

export function bashCompletion(): string {
  const cases = pages.flatMap(([name, page]) =>
    hasVerbs(page)
      ? [
          `      ${name}) words='${[...Object.keys(page.verbs), '--help'].join(' ')}' ;;`,
          ...Object.entries(page.verbs).map(
            ([verb, form]) => `      '${name} ${verb}') words='${optionNames(form).join(' ')}' ;;`,
          ),
        ]
      : Object.values(page.verbs).map(
          (form) => `      ${name} | '${name} '*) words='${optionNames(form).join(' ')}' ;;`,
        ),
  )
  return `# bash completion for postern
_postern() {
  local first=1 words='' key cur=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD - 1]}
  [[ \${COMP_WORDS[1]} == --settings ]] && first=3
  COMPREPLY=()
  case $previous in
    --settings | ${optionsThat(takesFile).join(' | ')})
      mapfile -t COMPREPLY < <(compgen -f -- "$cur")
      return ;;
    ${optionsThat((option) => option.value !== undefined && !takesFile(option)).join(' | ')})
      return ;;
  esac
  if ((COMP_CWORD <= first)); then
    words='${[...pages.map(([name]) => name), '--help', '--settings', '--version'].join(' ')}'
  else
    key=\${COMP_WORDS[first]}
    ((COMP_CWORD > first + 1)) && key+=" \${COMP_WORDS[first + 1]}"
    case $key in
${cases.join('\n')}
    esac
  fi
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
}
complete -F _postern postern`
}

/** In single quotes; a colon separates a word from its description. */
const described = (word: string, about: string): string =>
  `'${`${word.replaceAll(':', '\\:')}:${about}`.replaceAll("'", `'\\''`)}'`

export function zshCompletion(): string {
  const list = (words: [word: string, about: string][]): string =>
    words.map((one) => `        ${described(...one)}`).join('\n')
  const optionsOf = ({ options }: Verb): [string, string][] => [
    ...Object.entries(options).map(([name, { about }]): [string, string] => [`--${name}`, about]),
    ['--help', 'Print help for this command.'],
  ]
  const entry = (pattern: string, words: [string, string][]): string =>
    `      ${pattern}) choices=(\n${list(words)}\n      ) ;;`
  const cases = pages.flatMap(([name, page]) =>
    hasVerbs(page)
      ? [
          entry(
            name,
            Object.entries(page.verbs).map(([verb, { about }]) => [verb, about]),
          ),
          ...Object.entries(page.verbs).map(([verb, form]) => entry(`'${name} ${verb}'`, optionsOf(form))),
        ]
      : Object.values(page.verbs).map((form) => entry(`${name}|'${name} '*`, optionsOf(form))),
  )
  return `#compdef postern
_postern() {
  local first=2 key
  local -a choices
  [[ $words[2] == --settings ]] && first=4
  case $words[CURRENT-1] in
    --settings|${optionsThat(takesFile).join('|')}) _files; return ;;
    ${optionsThat((option) => option.value !== undefined && !takesFile(option)).join('|')}) return ;;
  esac
  if (( CURRENT <= first )); then
    choices=(
${list([...pages.map(([name, { summary }]): [string, string] => [name, summary]), ['--settings', 'Read settings from a file.']])}
    )
  else
    key=$words[first]
    (( CURRENT > first + 1 )) && key+=" $words[first+1]"
    case $key in
${cases.join('\n')}
    esac
  fi
  _describe postern choices
}
if [[ $funcstack[1] == _postern ]]; then _postern "$@"; else compdef _postern postern; fi`
}
