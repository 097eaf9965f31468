import { readFileSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'

/**
 * A customer's receiver as a separate process, started by receiver.ts. It returns 204 to every POST and records the
 * time (ms) of each id. It never responds to a POST to /hang, and returns 500 for /fail.
 */
const [certificate = '', key = ''] = process.argv.slice(2)
let times: number[] = []
let ids: string[] = []
let body = ''

const server = createServer(
  { cert: readFileSync(certificate), key: readFileSync(key) },
  (request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('error', () => {})
    request.on('end', () => {
      if (request.url?.startsWith('/hang')) return
      if (request.url?.startsWith('/fail')) return void response.writeHead(500).end()
      times.push(performance.timeOrigin + performance.now())
      ids.push(String(request.headers['webhook-id']))
      if (body === '') body = Buffer.concat(chunks).toString()
      response.writeHead(204).end()
    })
  },
)
server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }))
let told = -1
setInterval(() => {
  if (told !== times.length) process.send?.({ count: times.length })
  told = times.length
}, 50)
process.on('message', (order: 'read' | 'empty') => {
  if (order === 'read') process.send?.({ times, ids, body })
  else {
    times = []
    ids = []
    body = ''
    process.send?.({ count: 0, isEmpty: true })
    told = 0
  }
})
process.on('disconnect', () => process.exit())
