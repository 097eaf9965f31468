export interface FirstMail {
  secret: string
  from: string
  to: string
}

export type Language = 'curl' | 'typescript' | 'python'

const contentOf = ({ from, to }: FirstMail) => ({
  from,
  to: [to],
  subject: 'Hello',
  text: 'My first mail.',
})

/** Quoted for a shell: an apostrophe ends the string, is escaped, and starts the next one. */
const shell = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`

/** Code that sends the mail, by language. Needs nothing that has to be installed. */
export const firstMailIn: Record<Language, (mail: FirstMail, url: string) => string> = {
  curl: (mail, url) =>
    [
      `curl ${shell(url)} \\`,
      `  -H ${shell(`Authorization: Bearer ${mail.secret}`)} \\`,
      `  -H 'Content-Type: application/json' \\`,
      `  -d ${shell(JSON.stringify(contentOf(mail)))}`,
    ].join('\n'),
  typescript: (mail, url) => `const response = await fetch(${JSON.stringify(url)}, {
  method: 'POST',
  headers: {
    authorization: ${JSON.stringify(`Bearer ${mail.secret}`)},
    'content-type': 'application/json',
  },
  body: JSON.stringify(${indented(contentOf(mail), 2)}),
})
console.log(await response.json())`,
  python: (mail, url) => `import json, urllib.request

request = urllib.request.Request(
    ${JSON.stringify(url)},
    headers={
        "Authorization": ${JSON.stringify(`Bearer ${mail.secret}`)},
        "Content-Type": "application/json",
    },
    data=json.dumps(${indented(contentOf(mail), 4)}).encode(),
)
print(urllib.request.urlopen(request).read().decode())`,
}

/** JSON is valid in TypeScript and, without true, false and null, in Python. */
const indented = (content: object, by: number): string =>
  JSON.stringify(content, null, by === 4 ? 4 : 2).replaceAll('\n', `\n${' '.repeat(by)}`)
