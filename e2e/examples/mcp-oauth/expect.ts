import { expect } from '@jest/globals'
import { expectations, type ExampleRun } from '../../harness/example/expectations.ts'
import { connectWithLogin } from '../../harness/identity/mcp-login.ts'
import { logIn, OAuthSession } from '../../harness/identity/oauth-client.ts'
import { waitUntil } from '../../harness/wait.ts'

/** Connects an SDK client whose user logs in. */
async function connectAs(run: ExampleRun, user: string) {
  const url = new URL(`http://localhost:${run.port(8080)}/mcp`)
  const login = (start: URL, redirectUrl: string): Promise<URL> => logIn(start, redirectUrl, user)
  return connectWithLogin(url, new OAuthSession(), { sdk: 2, login })
}

export default expectations({
  'an SDK client discovers the identity provider, logs in and lists the tools of its user': async (run) => {
    for (const [user, expected] of [
      ['bob', ['search']],
      ['ann', ['search', 'delete']],
    ] as const) {
      const client = await connectAs(run, user)
      expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(expected)
      expect((await client.callTool({ name: 'search', arguments: { text: 'x' } })).content).toEqual([{ type: 'text', text: 'search in documents: "x"' }])
      await client.close()
    }
  },
  'the log contains the subject of the token': async (run) => {
    const client = await connectAs(run, 'carol')
    await client.close()
    await waitUntil('a line about carol', () => run.dataplane.program.lines.some(({ text }) => text.includes('jwt.sub=carol')))
  },
})
