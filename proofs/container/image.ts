import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { Copy, DockerfileParser, type Instruction } from 'dockerfile-ast'
import { extractDebian, installNode } from '../install/machine.ts'

/** The result of building an image: its files, and how its container is started. */
export interface Image {
  files: string
  env: Record<string, string>
  user: string
  command: string[]
  healthcheck: string[]
}

interface Stage extends Image {
  workdir: string
  entrypoint: string[]
  arguments: string[]
}

/**
 * Builds a Dockerfile without a container engine. Supports the instructions used in this project: FROM, COPY, RUN,
 * WORKDIR, USER, ENV, HEALTHCHECK, ENTRYPOINT, CMD and EXPOSE. Other instructions are rejected. The base image is
 * Debian 12, with Node.js in /usr/local for Node.js images; systemd-nspawn executes RUN.
 */
export function buildImage(dockerfile: string, context: { folder: string; files: string[] }): Image {
  const stages = new Map<string, Stage>()
  let stage: Stage | undefined
  for (const instruction of DockerfileParser.parse(readFileSync(dockerfile, 'utf8')).getInstructions()) {
    if (instruction.getKeyword() === 'FROM') {
      const [base = '', , name = ''] = wordsOf(instruction)
      stage = stageFrom(base)
      stages.set(name, stage)
    } else {
      follow(stage ?? missingBase(dockerfile), instruction, stages, context)
    }
  }
  const { entrypoint, arguments: rest, ...image } = stage ?? missingBase(dockerfile)
  return { ...image, command: [...entrypoint, ...rest] }
}

function missingBase(dockerfile: string): never {
  throw new Error(`${dockerfile} has no FROM`)
}

function stageFrom(base: string): Stage {
  const files = mkdtempSync(path.join(tmpdir(), 'postern-image-'))
  extractDebian(files)
  if (base.startsWith('node:')) installNode(files)
  return {
    files,
    env: {},
    user: 'root',
    command: [],
    healthcheck: [],
    workdir: '/',
    entrypoint: [],
    arguments: [],
  }
}

const wordsOf = (instruction: Instruction): string[] =>
  instruction.getArguments().map((argument) => argument.getValue())

/** Parses a list such as `["a", "b"]`. */
const listIn = (text: string): string[] => JSON.parse(/\[.*\]/s.exec(text)?.[0] ?? '[]')

function follow(
  stage: Stage,
  instruction: Instruction,
  stages: Map<string, Stage>,
  context: { folder: string; files: string[] },
): void {
  const keyword = instruction.getKeyword()
  const text = instruction.getRawArgumentsContent() ?? ''
  const words = wordsOf(instruction)
  const steps: Record<string, () => void> = {
    WORKDIR() {
      stage.workdir = text
      mkdirSync(path.join(stage.files, text), { recursive: true })
    },
    COPY() {
      const from = instruction instanceof Copy ? instruction.getFromFlag()?.getValue() : undefined
      const [sources, target] = [words.slice(0, -1), words.at(-1) ?? '']
      if (from) copy(filesOf(stages, from, sources), stage, target)
      else copyContext(sources, stage, target, context)
    },
    RUN: () => run(stage, text),
    USER() {
      stage.user = text
    },
    ENV() {
      for (const word of text.split(/\s+/))
        stage.env[word.split('=')[0] ?? ''] = word.slice(word.indexOf('=') + 1)
    },
    HEALTHCHECK() {
      stage.healthcheck = listIn(text)
    },
    ENTRYPOINT() {
      stage.entrypoint = listIn(text)
    },
    CMD() {
      stage.arguments = listIn(text)
    },
    EXPOSE() {},
  }
  const step = steps[keyword]
  if (!step) throw new Error(`The instruction ${keyword} is not supported`)
  process.stdout.write(`${keyword} ${text.split('\n')[0]}\n`)
  step()
}

function filesOf(stages: Map<string, Stage>, name: string, sources: string[]): string[] {
  const stage = stages.get(name)
  if (!stage) throw new Error(`There is no stage ${name}`)
  return sources.map((source) => path.join(stage.files, source))
}

/** Copies the content of a folder, or files into a folder. */
function copy(sources: string[], { files, workdir }: Stage, target: string): void {
  const there = path.join(files, path.resolve(workdir, target))
  for (const source of sources) {
    const isFolder = statSync(source).isDirectory()
    const to = !isFolder && target.endsWith('/') ? path.join(there, path.basename(source)) : there
    mkdirSync(isFolder ? to : path.dirname(to), { recursive: true })
    cpSync(source, to, { recursive: true })
  }
}

function copyContext(
  names: string[],
  { files, workdir }: Stage,
  target: string,
  { folder, files: known }: { folder: string; files: string[] },
): void {
  for (const name of names) {
    const wanted = known.filter((file) => name === '.' || file === name)
    if (wanted.length === 0) throw new Error(`${name} is not in the build context`)
    for (const file of wanted) {
      const to = path.join(files, path.resolve(workdir, target), name === '.' ? file : path.basename(file))
      mkdirSync(path.dirname(to), { recursive: true })
      cpSync(path.join(folder, file), to)
    }
  }
}

/** Uses this machine's package cache and trusted CAs, because access to the registry may depend on them. */
function run({ files, workdir }: Stage, command: string): void {
  const cache = execFileSync('npm', ['config', 'get', 'cache'], { encoding: 'utf8' }).trim()
  const authorities = process.env['NODE_EXTRA_CA_CERTS']
  const options = [
    ...[
      '--quiet',
      '--register=no',
      '--keep-unit',
      '--console=pipe',
      `--chdir=${workdir}`,
      `--directory=${files}`,
    ],
    ...[`--bind=${cache}:/root/.npm`, '--setenv=npm_config_prefer_offline=true'],
    ...(authorities ? [`--bind-ro=${authorities}:/run/authorities`] : []),
    ...(authorities ? ['--setenv=NODE_EXTRA_CA_CERTS=/run/authorities'] : []),
  ]
  execFileSync('systemd-nspawn', [...options, '/bin/sh', '-c', command], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
}
