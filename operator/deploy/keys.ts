import { ADMIN_TOKEN_ENTRY, adminTokenSecret, safeName } from '#api/names.ts'
import { sha256Hex } from './hash.ts'
import { objectName } from './metadata.ts'
import { failParameters, type DeployFailure, type DeployGateway, type DeployInput, type KeyName } from './types.ts'

/** A random key of each Gateway, in a Secret that the operator makes once, and the variable of the data plane that is set from it. */
interface ManagedKey {
  /** The pod annotation `checksum/<name>` rolls the pods. */
  readonly name: KeyName
  readonly variable: string
  readonly entry: string
  secretName(gateway: DeployGateway): string
}

/** A key and the Secret to keep it in. */
export interface GatewayKey extends ManagedKey {
  readonly secret: string
  /** 64 hex digits. */
  readonly value: string
}

export const managedKeys: readonly ManagedKey[] = [
  { name: 'session-key', variable: 'SESSION_KEY', entry: 'key', secretName: (gateway) => safeName(`${objectName(gateway)}-session-key`, sha256Hex) },
  { name: 'admin-token', variable: 'ADMIN_TOKEN', entry: ADMIN_TOKEN_ENTRY, secretName: (gateway) => adminTokenSecret(objectName(gateway), sha256Hex) },
]
const IS_KEY = /^[0-9a-fA-F]{64}$/

/** The keys of a Gateway, but for those whose variables the parameters set: that of the live Secret, which is never overwritten, else a new one. */
export function chooseKeys({ gateway, keySecrets, generateKey }: DeployInput, given: ReadonlySet<string>): readonly GatewayKey[] | DeployFailure {
  const keys: GatewayKey[] = []
  for (const managed of managedKeys.filter(({ variable }) => !given.has(variable))) {
    const { name, entry } = managed
    const secret = managed.secretName(gateway)
    const live = keySecrets[name]
    const value =
      live === undefined
        ? generateKey()
        : Buffer.from(live.data?.[entry] ?? '', 'base64')
            .toString('utf8')
            .trim()
    // The value is secret: the message describes the format and does not quote the value.
    if (!IS_KEY.test(value))
      return failParameters(
        `Secret ${gateway.metadata.namespace}/${secret} has no usable ${name.replace('-', ' ')}: ${entry} must be 32 bytes in hex; correct it, or delete the Secret to get a new one`,
        'PX1026',
      )
    keys.push({ ...managed, secret, value })
  }
  return keys
}
