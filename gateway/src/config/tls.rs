//! What TLS needs: a certificate with its key, and whose client certificates are accepted.

use super::{ConfigError, raw};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, version};
use std::path::Path;
use std::sync::Arc;

/// SHA-256 of a certificate in DER.
pub(crate) type Fingerprint = [u8; 32];

/// The settings of TLS connections. Paths are relative to `base`.
pub(super) fn server(raw: &raw::Tls, base: &Path) -> Result<Arc<ServerConfig>, ConfigError> {
    let wrong = |what: &str, path: &Path, error: &dyn std::fmt::Display| {
        ConfigError::new(&base.join(path), format!("{what}: {error}"))
    };
    let certificates = certificates(&base.join(&raw.certificate))
        .map_err(|error| wrong("the certificate for TLS", &raw.certificate, &error))?;
    let key = PrivateKeyDer::from_pem_file(base.join(&raw.key))
        .map_err(|error| wrong("the key of the certificate", &raw.key, &error))?;
    let provider = Arc::new(ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&version::TLS13, &version::TLS12])
        .map_err(|error| ConfigError(format!("TLS: {error}")))?;
    let builder = match &raw.client_ca {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let mut roots = RootCertStore::empty();
            for root in self::certificates(&base.join(path)).map_err(|error| wrong("client_ca", path, &error))? {
                roots.add(root).map_err(|error| wrong("client_ca", path, &error))?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                .build()
                .map_err(|error| wrong("client_ca", path, &error))?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let config = builder
        .with_single_cert(certificates, key)
        .map_err(|error| wrong("the certificate and its key", &raw.certificate, &error))?;
    Ok(Arc::new(config))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let certificates = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| error.to_string())?;
    if certificates.is_empty() {
        return Err("no certificate is in it".to_owned());
    }
    Ok(certificates)
}

/// A fingerprint as `openssl x509 -fingerprint -sha256` prints it, with or without the colons.
pub(super) fn fingerprint(text: &str) -> Option<Fingerprint> {
    let digits = text.replace(':', "");
    let mut fingerprint = [0; 32];
    if digits.len() != 64 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    for (place, byte) in fingerprint.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&digits[2 * place..2 * place + 2], 16).ok()?;
    }
    Some(fingerprint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_is_32_bytes_in_hex() {
        let text = ["0A"; 32].join(":");
        assert_eq!(fingerprint(&text), Some([10; 32]));
        assert_eq!(fingerprint(&text.replace(':', "").to_lowercase()), Some([10; 32]));
        for wrong in [
            "",
            "0A:0B",
            &text[3..],
            &text.replace("0A", "0G"),
            &text.replace("0A", "+A"),
        ] {
            assert_eq!(fingerprint(wrong), None, "{wrong}");
        }
    }
}
