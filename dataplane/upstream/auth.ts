import { Secret } from '#api/cel/index.ts'
import type { Exchange } from '../exchange.ts'
import type { HeaderList } from '../http/headers.ts'

/** What a destination is shown as credentials (part 2, Backend authentication). */
export type UpstreamAuth =
  | { readonly kind: 'bearer'; readonly token: string }
  /** The client's own credential, which its authentication policy took out. */
  | { readonly kind: 'passthrough' }
  /** It cannot be had: no request goes out. `reason` may reach the client and holds no secret. */
  | { readonly kind: 'broken'; readonly reason: string }

/** Writes the credentials of a destination into the headers of a request to it; `exchange` is the one it is made for, if any. */
export function authenticate(headers: HeaderList, auth: UpstreamAuth, exchange: Exchange | undefined): void {
  const token = auth.kind === 'bearer' ? auth.token : auth.kind === 'passthrough' && exchange !== undefined ? validatedCredential(exchange) : undefined
  // All lines are replaced: which of two the upstream would believe is anyone's guess.
  if (token !== undefined) headers.set('authorization', `Bearer ${token}`)
}

/** Where the JWT and API key policies leave what they accepted and removed. */
const places = [
  ['jwt', 'rawToken'],
  ['apiKey', 'key'],
] as const

function validatedCredential(exchange: Exchange): string | undefined {
  for (const [name, member] of places) {
    const left = exchange.get(name) as Readonly<Record<string, unknown>> | undefined
    const credential = left?.[member]
    if (credential instanceof Secret) return credential.reveal()
  }
  return undefined
}
