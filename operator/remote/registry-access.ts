import { X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { createSecureContext, getCACertificates, type SecureContext } from 'node:tls'
import { isJsonObject } from '#api/json/index.ts'

/** Files that the requests to registries depend on. They are read before each fetch, so that a change needs no restart. */
export interface RegistryFiles {
  /** CA certificates in PEM, in addition to those of the system. */
  readonly ca?: string | undefined
  /** Credentials as `docker login` and Secrets of type kubernetes.io/dockerconfigjson have them. */
  readonly config?: string | undefined
}

/** Whom a client of registries trusts, and its credentials. */
export interface RegistryAccess {
  /** Undefined: the CAs of the system. */
  readonly secureContext: SecureContext | undefined
  /**
   * Value of a header Authorization for a repository (`registry/repository`); undefined: there are no credentials for it.
   *
   * @throws Error if the entry for the repository has no credentials
   */
  authorize(repository: string): string | undefined
}

/** Reads the files. Rejects with an Error that names the file, and quotes nothing of it. */
export function createRegistryAccess({ ca, config }: RegistryFiles): () => Promise<RegistryAccess> {
  let context: { readonly pem: string; readonly secure: SecureContext } | undefined
  return async () => {
    const [pem, json] = await Promise.all([ca === undefined ? undefined : readSettingFile(ca), config === undefined ? undefined : readSettingFile(config)])
    // Reading the CAs of the system takes milliseconds.
    if (pem !== undefined && pem !== context?.pem) context = { pem, secure: createContext(pem, ca ?? '') }
    const entries = json === undefined ? [] : readCredentials(json, config ?? '')
    return {
      secureContext: pem === undefined ? undefined : context?.secure,
      authorize(repository) {
        const entry = entries.find(({ matches }) => matches(repository))
        if (entry !== undefined && entry.authorization === undefined)
          throw new Error(`${config}: auths[${JSON.stringify(entry.name)}] needs auth, or username and password`)
        return entry?.authorization
      },
    }
  }
}

const readSettingFile = (path: string): Promise<string> =>
  readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new Error(`${path} cannot be read: ${error.code ?? error.message}`)
  })

function createContext(pem: string, path: string): SecureContext {
  const own = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? []
  if (own.length === 0) throw new Error(`${path} has no certificate; write CA certificates in PEM`)
  own.forEach((certificate, index) => {
    try {
      new X509Certificate(certificate)
    } catch {
      throw new Error(`${path}: certificate ${index + 1} is not valid`)
    }
  })
  return createSecureContext({ ca: [...getCACertificates('default'), ...own] })
}

interface Entry {
  readonly name: string
  /** Length of the part after the host. */
  readonly length: number
  readonly authorization: string | undefined
  matches(repository: string): boolean
}

/** The entries of `auths`, those with the longest name first. */
function readCredentials(json: string, path: string): Entry[] {
  let value: unknown
  try {
    value = JSON.parse(json)
  } catch {
    // Reported below: the error of the parser may quote the file.
  }
  if (!isJsonObject(value) || !isJsonObject(value['auths'])) throw new Error(`${path} is no JSON object with auths; write it as docker login does`)
  return Object.entries(value['auths'])
    .map(([name, entry]) => readEntry(name, isJsonObject(entry) ? entry : {}))
    .toSorted((a, b) => b.length - a.length)
}

/** A name is a host with port, or the beginning of a repository; `*` stands for any part of a label of the host, as for the kubelet. */
function readEntry(name: string, { auth, username, password }: Readonly<Record<string, unknown>>): Entry {
  let basic: string | undefined
  if (typeof auth === 'string' && auth !== '') basic = Buffer.from(auth, 'base64').toString()
  else if (typeof username === 'string' && typeof password === 'string') basic = `${username}:${password}`
  const place = name.replace(/^https?:\/\//, '').replace(/\/+$/, '')
  const [host = '', ...parts] = /^(index\.)?docker\.io(\/v[12])?$/.test(place) ? ['docker.io'] : place.split('/')
  const prefix = ['', ...parts].join('/')
  const pattern = new RegExp(
    `^${host
      .toLowerCase()
      .replaceAll(/[^a-z0-9*]/g, String.raw`\$&`)
      .replaceAll('*', '[^.:]*')}$`,
  )
  return {
    name,
    length: prefix.length,
    authorization: basic === undefined || basic.indexOf(':') < 1 ? undefined : `Basic ${Buffer.from(basic).toString('base64')}`,
    matches(repository) {
      const slash = repository.indexOf('/')
      return pattern.test(repository.slice(0, slash)) && `${repository.slice(slash)}/`.startsWith(`${prefix}/`)
    },
  }
}
