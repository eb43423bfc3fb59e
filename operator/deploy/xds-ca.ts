import { failParameters, type DeployFailure, type SecretData } from './types.ts'

export const XDS_CERTIFICATE_SECRET = 'proxy-xds-cert'
export const CA_ENTRY = 'ca.crt'

/** PEM that data planes verify the config stream with (operator.md §2.9). */
export function readXdsCa(secret: SecretData | undefined): { readonly ok: true; readonly pem: string } | DeployFailure {
  if (!secret) return failParameters(`Secret ${XDS_CERTIFICATE_SECRET} not found in the operator's namespace; TLS of the config stream needs it`, 'PX1024')
  const pem = Buffer.from(secret.data?.[CA_ENTRY] || secret.data?.['tls.crt'] || '', 'base64').toString('utf8')
  if (pem.trim() === '') return failParameters(`Secret ${XDS_CERTIFICATE_SECRET} has neither ${CA_ENTRY} nor tls.crt`, 'PX1024')
  return { ok: true, pem }
}
