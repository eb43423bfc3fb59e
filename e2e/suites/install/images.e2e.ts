import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { findEngine } from '../../../images/engine.ts'
import { ROOT, run } from './cluster.ts'

test.each(['controller', 'proxy'])('the image %s is saved as an OCI archive for releases', async (repository) => {
  const { version } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as { readonly version: string }
  const directory = await mkdtemp(join(tmpdir(), 'oci-'))
  try {
    const archive = join(directory, 'image.tar')
    findEngine().saveOci(`localhost/${repository}:v${version}`, archive)
    const readJson = async (path: string): Promise<unknown> => JSON.parse(await run('tar', ['-xOf', archive, path]))
    expect(await readJson('oci-layout')).toMatchObject({ imageLayoutVersion: '1.0.0' })
    const { manifests } = (await readJson('index.json')) as { readonly manifests: readonly { readonly mediaType: string; readonly digest: string }[] }
    expect(manifests).toMatchObject([{ mediaType: 'application/vnd.oci.image.manifest.v1+json' }])
    const { config } = (await readJson(`blobs/${manifests[0]?.digest.replace(':', '/')}`)) as { readonly config: { readonly digest: string } }
    expect(await readJson(`blobs/${config.digest.replace(':', '/')}`)).toMatchObject({ os: 'linux', config: { User: '65532:65532' } })
  } finally {
    await rm(directory, { recursive: true })
  }
})
