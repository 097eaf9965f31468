import assert from 'node:assert/strict'
import { test } from 'node:test'
import { intrudedAudit, masterKeys } from '../../../testing/fixtures/audit-intruder.ts'
import { openDatabase } from '../../../testing/harness/database.ts'
import { Chance, seed } from '../../../testing/harness/random.ts'
import { type CheckpointContent, checkpointHash, type RowContent, rowHash } from './chain.ts'
import { catchUpFile } from './checkpoint-file.ts'
import { makeCheckpoints } from './checkpoints.ts'
import { type EndLine, exportAudit } from './export.ts'
import { verifyFiles } from './verify.ts'

/**
 * Random changes to an export in which checkpoints cover every row and are also in a separate file. Verification must detect
 * every change.
 */
const tamperings = Number(process.env['POSTERN_TEST_TAMPERINGS'] ?? 1_000)

const { database, db, keys, checkpointFile } = await intrudedAudit()
await makeCheckpoints(db, masterKeys)
await catchUpFile(db, checkpointFile)
// An export must contain the checkpoints that were made more than a minute before it.
const name = new URL(database.url).pathname.slice(1)
await database.query(`alter database ${name} set postern.clock_offset = '1 hour'`)
const laterDb = openDatabase(database).as('admin')
const lines: string[] = []
for await (const line of exportAudit(laterDb)) lines.push(line.slice(0, -1))

/** Verifies lines in memory, because ten thousand files would take too long. */
function verify(all: string[]) {
  async function* read() {
    for (const text of all.join('\n').split('\n')) yield { text }
  }
  const end = JSON.parse(all.at(-1) ?? '') as EndLine
  return verifyFiles([{ path: 'the export', end, lines: read }], { keys, checkpointFile })
}

type Row = RowContent & { type: string; prev_hash: string; hash: string; people: Record<string, unknown>[] }
type Checkpoint = CheckpointContent & { type: string; prev_hash: string; hash: string; signature: string }

const chance = new Chance(seed)
const random = (below: number) => chance.below(below)
const pick = <T>(list: readonly T[]): T => chance.pick(list)

const indexesOf = (type: string): number[] =>
  lines.flatMap((line, i) => (line.startsWith(`{"type":"${type}"`) ? [i] : []))
const audits = indexesOf('audit')
const checkpoints = indexesOf('checkpoint')
const read = <T>(all: string[], i: number): T => JSON.parse(all[i] as string) as T
const characters = [...'0123456789abcdefxyzAZ "{}[]:,.-+\\\n\u2028é']

/** Corrects the counts in the last line, as a careful forger would. */
function recount(all: string[]): void {
  const end = read<{ rows: number; checkpoints: number }>(all, all.length - 1)
  end.rows = all.filter((line) => line.startsWith('{"type":"audit"')).length
  end.checkpoints = all.filter((line) => line.startsWith('{"type":"checkpoint"')).length
  all[all.length - 1] = JSON.stringify(end)
}

function hashOf({ type: _type, prev_hash, hash: _hash, people: _people, ...content }: Row): string {
  return rowHash(prev_hash, content)
}

function changeField(row: Record<string, unknown>): void {
  const name = pick(
    Object.keys(row).filter((key) => !['type', 'prev_hash', 'hash', 'people', 'chain', 'seq'].includes(key)),
  )
  const value = row[name]
  if (typeof value === 'number') row[name] = value + 1 + random(9)
  else if (typeof value === 'string') row[name] = `${value}${pick(['x', ' ', '0'])}`
  else row[name] = value === null ? pick<unknown>([{}, 'x', 0, false]) : null
}

/** Each function changes the lines and returns the index of the changed line, if there is only one. */
const kinds: Record<string, (all: string[]) => number | undefined> = {
  characterReplaced(all) {
    const i = pick([...audits, ...checkpoints])
    const line = all[i] as string
    const at = random(line.length)
    const character = pick(characters.filter((character) => character !== line[at]))
    all[i] = line.slice(0, at) + character + line.slice(at + 1)
    return i
  },
  characterRemoved(all) {
    const i = pick([...audits, ...checkpoints])
    const line = all[i] as string
    const at = random(line.length)
    all[i] = line.slice(0, at) + line.slice(at + 1)
    return i
  },
  characterAdded(all) {
    const i = pick([...audits, ...checkpoints])
    const line = all[i] as string
    const at = random(line.length)
    all[i] = line.slice(0, at) + pick(characters) + line.slice(at)
    return i
  },
  lineRemoved(all) {
    all.splice(pick([...audits, ...checkpoints]), 1)
    if (random(2) === 0) recount(all)
    return undefined
  },
  lineRepeated(all) {
    all.splice(pick(audits), 0, all[pick(audits)] as string)
    return undefined
  },
  linesSwapped(all) {
    const list = pick([audits, checkpoints])
    const i = pick(list)
    const j = pick(list.filter((other) => other !== i))
    ;[all[i], all[j]] = [all[j] as string, all[i] as string]
    return undefined
  },
  fieldChanged(all) {
    const i = pick(audits)
    const row = read<Record<string, unknown>>(all, i)
    changeField(row)
    all[i] = JSON.stringify(row)
    return i
  },
  personChanged(all) {
    const i = pick(audits.filter((index) => read<Row>(lines, index).people.length > 0))
    const row = read<Row>(all, i)
    changeField(pick(row.people))
    all[i] = JSON.stringify(row)
    return i
  },
  rowRehashed(all) {
    const i = pick(audits)
    const row = read<Row & Record<string, unknown>>(all, i)
    changeField(row)
    all[i] = JSON.stringify({ ...row, hash: hashOf(row) })
    return undefined
  },
  chainRehashed(all) {
    const i = pick(audits)
    const row = read<Row & Record<string, unknown>>(all, i)
    changeField(row)
    let hash = row.prev_hash
    for (let j = i; audits.includes(j) && read<Row>(all, j).chain === row.chain; j++) {
      const next = { ...(j === i ? row : read<Row>(all, j)), prev_hash: hash }
      hash = hashOf(next)
      all[j] = JSON.stringify({ ...next, hash })
    }
    return undefined
  },
  tailCut(all) {
    const { chain, seq } = read<Row>(all, pick(audits))
    const kept = all.filter((line) => {
      const row = JSON.parse(line) as Row
      return row.type !== 'audit' || row.chain !== chain || row.seq < seq
    })
    all.splice(0, all.length, ...kept)
    recount(all)
    return undefined
  },
  checkpointsCut(all) {
    const from = pick(checkpoints)
    all.splice(from, checkpoints.length - checkpoints.indexOf(from))
    recount(all)
    return undefined
  },
  checkpointRehashed(all) {
    const i = pick(checkpoints)
    const { type, prev_hash, hash: _hash, signature, ...content } = read<Checkpoint>(all, i)
    const head = pick(content.heads)
    head.seq += 1 + random(5)
    all[i] = JSON.stringify({
      type,
      ...content,
      prev_hash,
      hash: checkpointHash(prev_hash, content),
      signature,
    })
    return undefined
  },
}

function positionIn(line: string | undefined): [number, number] | undefined {
  try {
    const { type, chain, seq } = JSON.parse(line ?? '') as Row
    return type === 'audit' ? [chain, seq] : undefined
  } catch {
    return undefined
  }
}

test(`${tamperings} random changes to an export are detected`, { timeout: 3_600_000 }, async (t) => {
  t.diagnostic(`seed ${seed} (POSTERN_TEST_SEED repeats it)`)
  assert.deepEqual((await verify(lines)).first_bad, null)
  const counts: Record<string, number> = {}
  for (let n = 0; n < tamperings; n++) {
    const kind = pick(Object.keys(kinds))
    counts[kind] = (counts[kind] ?? 0) + 1
    const altered = [...lines]
    const index = kinds[kind]?.(altered)
    const { ok, first_bad: bad } = await verify(altered)
    const what = `seed ${seed}, tampering ${n}, ${kind}: ${bad?.problem}`
    assert.equal(ok, false, what)
    if (index === undefined) continue
    const [before, now] = [positionIn(lines[index]), positionIn(altered[index])]
    // If the line can still be parsed as the same row, that row must be reported.
    const isRow = /^\{"type":"audit"[^\n]*$/.test(altered[index] ?? '')
    if (isRow && before && now && before.join() === now.join())
      assert.deepEqual([bad?.chain, bad?.seq], before, what)
  }
  t.diagnostic(JSON.stringify(counts))
})

test('malformed lines are rejected without an exception', async () => {
  const pieces: [old: string, forged: string][] = [
    ['"people":[', '"people":[null,'],
    ['"people":[', '"people":[5,'],
    ['"people":[{', '"people":{"0":[{'],
    ['"part":"actor"', '"part":"__proto__"'],
    ['"part":"actor"', '"part":null'],
    ['"salt":"', '"salt":5,"x":"'],
    ['"chain":', '"chain":null,"x":'],
    ['"seq":', '"seq":{},"x":'],
    ['"seq":', '"seq":1e999,"x":'],
    ['"prev_hash":"', '"prev_hash":null,"x":"'],
    ['"reason":', '"reason":"\\ud800","x":'],
    ['"before":', `"before":${'['.repeat(100_000)}${']'.repeat(100_000)},"x":`],
    ['"heads":[', '"heads":[null,'],
    ['"heads":[', '"heads":5,"x":['],
    ['"key_id":', '"key_id":{},"x":'],
    ['"signature":"', '"signature":7,"x":"'],
  ]
  for (const [old, forged] of pieces) {
    const index = lines.findIndex((line) => line.includes(old))
    const altered = lines.map((line, i) => (i === index ? line.replace(old, forged) : line))
    assert.notDeepEqual(altered, lines)
    assert.equal((await verify(altered)).ok, false, forged.slice(0, 40))
  }
  for (const line of [
    'null',
    '5',
    '[]',
    '"text"',
    '',
    '{}',
    '{"type":"audit"}',
    '{"type":"checkpoint"}',
    '{"type":"x"}',
  ]) {
    assert.equal((await verify([line, ...lines])).ok, false, line)
  }
})
