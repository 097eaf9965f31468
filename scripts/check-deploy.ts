import { spawnSync } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { DCLinter } from 'dclint'
import { DockerfileParser } from 'dockerfile-ast'
import { validate } from 'dockerfile-utils'
import { parse } from 'yaml'

/**
 * Checks deploy/ with the programs that use it: systemd, Postfix, the compose file schema, and Caddy if it is
 * installed. The nginx configuration is covered by the tests, which run nginx with it. Some rules are specific to this
 * project.
 */
process.chdir(path.resolve(import.meta.dirname, '..'))

/** The exposure level reported by `systemd-analyze security`, from 0 to 10. */
const mostExposure = 2
const problems: string[] = []
const read = (file: string): string => readFileSync(file, 'utf8')

function run(command: string, ...args: string[]): { status: number | null; output: string } {
  const { status, stdout, stderr, error } = spawnSync(command, args, { encoding: 'utf8' })
  return { status, output: error ? error.message : `${stdout}${stderr}`.trim() }
}

function checkUnits(): void {
  const units = globSync('deploy/systemd/*.service').sort()
  const verified = run('systemd-analyze', 'verify', ...units.map((unit) => `./${unit}`))
  if (verified.status !== 0 || verified.output !== '')
    problems.push(`systemd-analyze verify: ${verified.output}`)
  const common = new Set(units.map((unit) => read(unit).match(/^# --- Common.*(?=^# --- Specific)/ms)?.[0]))
  if (common.size !== 1 || common.has(undefined))
    problems.push('deploy/systemd: the common part of the units differs or is missing')
  for (const unit of units) {
    const { output } = run('systemd-analyze', 'security', '--offline=yes', '--no-pager', `./${unit}`)
    const exposure = Number(/Overall exposure level for \S+: ([\d.]+)/.exec(output)?.[1] ?? Number.NaN)
    if (!(exposure <= mostExposure)) problems.push(`${unit}: exposure ${exposure}, more than ${mostExposure}`)
  }
}

function checkPostfix(): void {
  const { status, output } = run('/usr/sbin/postconf', '-c', 'deploy/postfix', '-n')
  if (status !== 0) problems.push(`postconf: ${output}`)
  for (const line of output.split('\n').filter((one) => /warning|error/.test(one) && !/^\w+ = /.test(one)))
    problems.push(line)
}

function checkDockerfile(file: string, { mayBeRoot }: { mayBeRoot: boolean }): void {
  for (const { range, message } of validate(read(file)))
    problems.push(`${file}:${range.start.line + 1}: ${message}`)
  const instructions = DockerfileParser.parse(read(file)).getInstructions()
  const argumentsOf = (keyword: string) =>
    instructions.filter((one) => one.getKeyword() === keyword).map((one) => one.getArgumentsContent() ?? '')
  for (const base of argumentsOf('FROM'))
    if (!/^\S+:\d+\.\d+\S*( AS \w+)?$/.test(base))
      problems.push(`${file}: "${base}" does not specify an exact version`)
  if (!mayBeRoot && !/^[1-9]\d*:[1-9]\d*$/.test(argumentsOf('USER').at(-1) ?? ''))
    problems.push(`${file}: must run as a numeric user other than root`)
  if (argumentsOf('HEALTHCHECK').length !== 1) problems.push(`${file}: needs exactly one HEALTHCHECK`)
  if (!argumentsOf('ENTRYPOINT').at(-1)?.startsWith('['))
    problems.push(`${file}: the exec form is required, so that signals reach the program`)
}

interface Service {
  image: string
  read_only?: boolean
  cap_drop?: string[]
  security_opt?: string[]
  ports?: string[]
  environment?: Record<string, string>
}

function checkCompose(file: string): void {
  const unimportant = { 'service-keys-order': 0, 'services-alphabetical-order': 0 } as const
  const checksPullPolicy: [2, { checkPullPolicy: true }] = [2, { checkPullPolicy: true }]
  const rules = { ...unimportant, 'no-build-and-image': checksPullPolicy }
  const linter = new DCLinter({ rules, quiet: false, debug: false, exclude: [] })
  for (const { messages } of linter.lintFiles([file], false))
    for (const { line, message } of messages) problems.push(`${file}:${line}: ${message}`)
  const { services } = parse(read(file)) as { services: Record<string, Service> }
  for (const [name, service] of Object.entries(services)) {
    const expect = (isSo: boolean, what: string) => isSo || problems.push(`${file}: ${name} ${what}`)
    expect(service.read_only === true, 'must have a read-only image')
    expect(service.cap_drop?.join() === 'ALL', 'keeps privileges')
    expect(service.security_opt?.includes('no-new-privileges:true') === true, 'must set no-new-privileges')
    expect(/:local$|:\d+\.\d+/.test(service.image), 'has no exact version')
    for (const port of service.ports ?? [])
      expect(port.startsWith('127.0.0.1:'), `publishes ${port} on all interfaces`)
    for (const setting of Object.keys(service.environment ?? {}))
      expect(!/(PASSWORD|SECRETS?|KEYS?|DATABASE_\w*URL)$/.test(setting), `has a secret in ${setting}`)
  }
}

/** Patroni and etcd must require cluster certificates. */
function checkPatroni(): void {
  const folder = 'deploy/patroni'
  const etcd = read(`${folder}/etcd.env`)
  if (/http:\/\//.test(etcd)) problems.push(`${folder}/etcd.env: an address without TLS`)
  for (const setting of ['ETCD_CLIENT_CERT_AUTH', 'ETCD_PEER_CLIENT_CERT_AUTH'])
    if (!etcd.includes(`\n${setting}=true\n`)) problems.push(`${folder}/etcd.env: ${setting} is not true`)
  const { restapi, etcd3 } = parse(read(`${folder}/patroni.yml`)) as Record<string, Record<string, string>>
  if (restapi?.['verify_client'] !== 'required' || !restapi['certfile'])
    problems.push(`${folder}/patroni.yml: the REST API accepts clients without a certificate`)
  if (etcd3?.['protocol'] !== 'https') problems.push(`${folder}/patroni.yml: etcd is contacted without TLS`)
  if (!/^PATRONI_RESTAPI_PASSWORD=/m.test(read(`${folder}/node.env`)))
    problems.push(`${folder}/node.env: the REST API has no password`)
  if (!/^ {2}default-server check-ssl verify required /m.test(read(`${folder}/haproxy.cfg`)))
    problems.push(`${folder}/haproxy.cfg: Patroni is contacted without TLS`)
}

function checkCaddy(): void {
  const file = 'deploy/caddy/Caddyfile'
  const { status, output } = run('caddy', 'validate', '--adapter', 'caddyfile', '--config', file)
  if (status === null) process.stdout.write(`Caddy is not installed: ${file} was not checked.\n`)
  else if (status !== 0) problems.push(`${file}: ${output}`)
}

checkUnits()
checkPostfix()
checkDockerfile('deploy/Dockerfile', { mayBeRoot: false })
checkDockerfile('deploy/postfix/Dockerfile', { mayBeRoot: true })
checkCompose('deploy/compose.yaml')
checkPatroni()
checkCaddy()
for (const problem of problems) process.stderr.write(`${problem}\n`)
process.exitCode = problems.length === 0 ? 0 : 1
